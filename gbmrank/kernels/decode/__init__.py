"""From scores or pair values to rankings."""
