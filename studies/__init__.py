"""Studies that write the research pages of docs/results: papers run again, and our own."""
