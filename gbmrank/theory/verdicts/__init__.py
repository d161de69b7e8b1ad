"""What is known of an objective and a metric: verdicts, their conditions, advice."""
