"""One HTML file about a comparison: works offline, without scripts, on paper and on phones."""

from gbmrank.experiments.report.page import write_report

__all__ = ["write_report"]
