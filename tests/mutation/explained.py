"""What is known about mutants that no test can or need notice."""

__all__ = ["reason_for"]

_SAME_MEAN = "equivalent: for a block of one item both formulas give its discount, up to rounding"
_ONLY_SPEED = "equivalent: how deep a ranking is sorted changes its time and no value"
_COST = "equivalent: an estimate of the work, by which queries are shared out to threads"
_LATER = "a test that notices it was added after the run"
_NEVER_READ = "equivalent: a cell that is the same for all, or is never read"
# (module, line, code after): the reason. When a line moves, its mutants are open again.
_REASONS = {
    ("gbmrank/kernels/positional.py", 30, "last - first >= 1"): _SAME_MEAN,
    ("gbmrank/kernels/positional.py", 30, "last + first"): _SAME_MEAN,
    ("gbmrank/metrics/binary.py", 75, "0 / sizes"): "equivalent: a query has at least one row",
    ("gbmrank/metrics/graded.py", 166, "1"): "equivalent: a query has at least one row",
    ("gbmrank/metrics/positional.py", 97, "counted >= longest"): _ONLY_SPEED,
    ("gbmrank/metrics/disagreement.py", 131, "2"): _NEVER_READ,
    ("gbmrank/objectives/push.py", 182, "4.0 * others * queries.positives - 100.0"): _COST,
    ("gbmrank/objectives/listmle.py", 103, "60.0 / data.groups.sizes"): _COST,
    ("gbmrank/objectives/listmle.py", 103, "60.0 * data.groups.sizes - 20.0"): _COST,
    ("gbmrank/objectives/bregman.py", 152, "40.0"): _COST,
    ("gbmrank/metrics/graded.py", 168, "best >= 0"): _LATER,
    ("gbmrank/metrics/precision.py", 202, "counts >= 0"): _LATER,
    ("gbmrank/kernels/set_decode.py", 45, "np.ones"): _NEVER_READ,
    ("gbmrank/kernels/set_decode.py", 45, "2"): _NEVER_READ,
}


def reason_for(module: str, line: int, after: str) -> str:
    """Return why a mutant survives, or an empty text."""
    return _REASONS.get((module, line, after), "")
