"""Public ways to train a ranker, with only the objective replaced."""
