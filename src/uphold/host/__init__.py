"""The machine: clock, files, locks, processes. The only package that touches them."""
