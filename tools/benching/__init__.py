"""What `tools/bench.py` is made of: contenders, measurements, and the table they end in."""
