"""Which objective ranks best on real data."""
