"""The local socket: its server and its client."""
