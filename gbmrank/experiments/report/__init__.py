"""HTML report of a comparison, in one file: works offline, on paper and on phones."""

from gbmrank.experiments.report.page import write_report
from gbmrank.experiments.report.sections import notebook

__all__ = ["notebook", "write_report"]
