"""Short scripts."""
