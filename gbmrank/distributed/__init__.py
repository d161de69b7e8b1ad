"""What the cluster engines share: rules, exact sums over tasks, and training in a task."""
