"""Speed, as ratios against a peer in the same process; run ``python -m benchmarks``."""
