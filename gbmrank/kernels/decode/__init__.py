"""Decoders: rankings from pair values."""
