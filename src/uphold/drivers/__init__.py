"""Whoever makes one kind of worker happen, each against the contract in `uphold.ports.drivers`."""
