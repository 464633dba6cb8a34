"""Configuration: files become `core.specs.Settings`, or a list of everything wrong with them.

Nothing is imported here on purpose: the command line only needs `finding`, which is light.
"""
