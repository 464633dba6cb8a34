"""The supervisor's memory: one SQLite file that only its owner writes and anybody may read."""
