"""Bringing a checkout up to date and back: git and pip, in steps that can be cut anywhere."""
