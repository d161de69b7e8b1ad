"""Two goals: one model each and a dial, against trainings on mixtures."""
