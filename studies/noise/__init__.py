"""Label noise of growing strength."""
