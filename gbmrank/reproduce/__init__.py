"""The experiments of the papers behind gbmrank, run again: our numbers beside theirs."""

from gbmrank.reproduce.report import Report, write_index
from gbmrank.reproduce.studies import STUDIES, load_study, run_study
from gbmrank.reproduce.study import Outcome, Settings, Study, Table

__all__ = [
    "STUDIES",
    "Outcome",
    "Report",
    "Settings",
    "Study",
    "Table",
    "load_study",
    "run_study",
    "write_index",
]
