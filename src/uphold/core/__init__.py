"""Decides. Frozen values and pure functions; no I/O, no clock, no randomness."""
