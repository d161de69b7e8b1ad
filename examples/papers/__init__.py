"""The experiments of the papers behind gbmrank, run again: our numbers beside theirs."""
