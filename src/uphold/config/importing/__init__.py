"""What other supervisors read becomes a configuration of ours, and an account of every setting.

One module per format, each pure: text in, `Import` out. `reading` is the front that opens files.
"""
