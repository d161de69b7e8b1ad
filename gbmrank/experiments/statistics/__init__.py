"""Statistics over queries: intervals, tests, corrections, and limits of what they show."""
