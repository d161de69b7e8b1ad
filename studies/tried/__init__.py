"""What was tried for quality and did not become a default."""
