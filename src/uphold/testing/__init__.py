"""The public test kit: fakes that keep the same contracts as the real things."""
