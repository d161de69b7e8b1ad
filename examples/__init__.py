"""Short scripts, and the papers run again."""
