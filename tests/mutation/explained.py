"""What is known about mutants that no test can or need notice."""

__all__ = ["reason_for"]

_SAME_MEAN = "equivalent: for a block of one item both formulas give its discount, up to rounding"
_ONLY_SPEED = "equivalent: how deep a ranking is sorted changes its time and no value"
_COST = "equivalent: an estimate of the work, by which queries are shared out to threads"
_NEVER_READ = "equivalent: a cell that is the same for all, or is never read"
_SIX_DIGITS = "equivalent: so near the best score both curvatures agree to six digits"
_NO_UTILITY = "equivalent: without utility every term of a softmax loss is zero on its own"
_TWO_WAYS = "equivalent: the recurrence and the integral lead to the same number"
_SHIFTED = "equivalent: the value of every place is shifted alike, and only their order is used"
_ENGINE = "equivalent: either engine may serve such a query, to the accuracy that is reported"
_CLEARED = "equivalent: the factor of such a query is 0; it is cleared lest fresh memory be NaN"
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
    ("gbmrank/objectives/bregman.py", 131, "1.0"): _NO_UTILITY,
    ("gbmrank/objectives/bregman.py", 132, "1.0"): _NO_UTILITY,
    ("gbmrank/objectives/bregman.py", 132, "totals >= 0"): _NO_UTILITY,
    ("gbmrank/objectives/bregman.py", 134, "2.0"): _NO_UTILITY,
    ("gbmrank/objectives/bregman.py", 135, "1.0"): "equivalent: such a query has the factor 0",
    ("gbmrank/objectives/linear.py", 128, "abs(way) < 1e-06 * abs(s)"): _SIX_DIGITS,
    ("gbmrank/objectives/linear.py", 128, "2e-06"): _SIX_DIGITS,
    ("gbmrank/losses/margin.py", 132, "margin >= 0.0"): "equivalent: both slopes are -1/2 at zero",
    ("gbmrank/losses/regularisers.py", 62, "slope >= 0.0"): "equivalent: zero has no sign",
    ("gbmrank/kernels/cascade.py", 125, "depth < k - a"): _TWO_WAYS,
    ("gbmrank/kernels/positional.py", 35, "1"): "equivalent: parts of 1023 terms, not of 1024",
    (
        "gbmrank/kernels/push.py",
        100,
        "len(s) > engines.linear_range * (np.max(s) - np.min(s))",
    ): _ENGINE,
    ("gbmrank/kernels/push.py", 144, "pass"): _CLEARED,
    (
        "gbmrank/kernels/map_decode.py",
        78,
        "after -= (gain[order[k]] + u[order[k], item]) / (k + 2)",
    ): _SHIFTED,
    (
        "gbmrank/kernels/map_decode.py",
        78,
        "(gain[order[k]] + u[order[k], item]) * (k + 2)",
    ): _SHIFTED,
    ("gbmrank/kernels/map_decode.py", 85, "place <= n - 1"): _NEVER_READ,
    ("gbmrank/kernels/set_decode.py", 32, "2"): "equivalent: some item is always chosen",
    ("gbmrank/kernels/set_decode.py", 45, "np.ones"): _NEVER_READ,
    ("gbmrank/kernels/set_decode.py", 45, "2"): _NEVER_READ,
}


def reason_for(module: str, line: int, after: str) -> str:
    """Return why a mutant survives, or an empty text."""
    return _REASONS.get((module, line, after), "")
