"""The boosters' own tests, run with objectives of gbmrank in place of theirs."""
