"""Orders that come as files through a shared folder, and the receipts that answer them.

What is read here is written by whoever can reach the share, so nothing of it is believed before
it is checked. Deciding is pure (`flags`, `signing`, `receipts`); the share itself is touched by a
helper program only (`helping`, driven by `shares`). `shelves` and `folders` are that program's.
"""
