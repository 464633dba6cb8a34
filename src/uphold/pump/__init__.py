"""The pump: moves worker output from FIFOs to rotated log files, and nothing else.

It runs as a process of its own, `python -I -S …/uphold/pump/__main__.py HOME`, outlives the
supervisor and stays small: beside `os` it imports only modules written in C, which is why
`_signal`, `_socket` and `_json` stand where their larger public wrappers would (they bring
`enum` and `re` along, three quarters of the interpreter's own size).
`reading` is the other side, for those who show logs; the pump itself never imports it.
"""
