"""The companion that copies the journal to the shared database, and what else speaks to that.

Needs the extra `sql`. Runs in a process of its own; the supervisor never imports it.
"""
