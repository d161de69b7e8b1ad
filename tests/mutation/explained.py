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
_NO_FACTOR = "equivalent: such a query has the factor 0"
_NOBODY_STOPS = "equivalent: a block at which nobody stops adds zero by the formulas, too"
_OTHER_HASH = "equivalent: a hash as good; they are compared with each other and never kept"
_EITHER = "equivalent: a query of just that length may be summed in closed form or pair by pair"
_ROOM = "equivalent: a buffer cut too long; what lies past the query is never read"
_NEXT_CHECK = "equivalent: the check of length and levels after it leaves short queries out, too"
_ONLY_SIGN = "equivalent: of this number only the sign is looked at"
_NEVER_ZERO = "equivalent: this number is 1 or -1, and never zero"
_SAME_SCORE = "equivalent: it is replaced by an equal score"
_CELLS = "equivalent: all cells or only those in use may be stored; that changes time and memory"
_GAPS = "equivalent: a Shell sort ends with the gap 1, wherever it begins; this changes its time"
_TWICE = "equivalent: a query that is done is summed a second time, to the same number"
_OTHER_WAY = "equivalent: pairs are then visited by calling the loss, to the same number"
_NO_DISTANCE = "equivalent: equal labels become levels at no distance, which add zero"
_NOTHING_FOUND = "equivalent: a block without a relevant item adds zero by the formulas, too"
_TOO_FAR = "equivalent: no plan reaches as far as the largest of all numbers"
_EQUAL_PLACES = "equivalent: of two places of equal value either will do"
_WORTH_NOTHING = "equivalent: a move that gains less than rounding is made, or is not"
_MASKED = "equivalent: lanes beyond the last pair are masked, and buffers have room for them"
_NO_PULL = "equivalent: an item and itself, and two items without utility, do not pull"
_NO_PAIRS = "equivalent: the terms of a query without pairs are zero by the formulas, too"
_NO_MORE_ROWS = "equivalent: there are no rows at the ranks that come on top"
# (module, line, code after): the reason. When a line moves, its mutants are open again.
_REASONS = {
    ("gbmrank/kernels/ranking/measures.py", 30, "last - first >= 1"): _SAME_MEAN,
    ("gbmrank/kernels/ranking/measures.py", 30, "last + first"): _SAME_MEAN,
    ("gbmrank/metrics/positional.py", 75, "0 / sizes"): "equivalent: a query has at least one row",
    ("gbmrank/metrics/positional.py", 173, "1"): "equivalent: a query has at least one row",
    ("gbmrank/metrics/positional.py", 101, "counted >= longest"): _ONLY_SPEED,
    ("gbmrank/metrics/positional.py", 88, "1"): _ONLY_SPEED,
    ("gbmrank/metrics/positional.py", 83, "2"): _NO_MORE_ROWS,
    ("gbmrank/metrics/precision.py", 74, "2"): _NO_MORE_ROWS,
    ("gbmrank/metrics/precision.py", 206, "2"): _NO_MORE_ROWS,
    ("gbmrank/metrics/disagreement.py", 131, "2"): _NEVER_READ,
    ("gbmrank/metrics/disagreement.py", 124, "np.ones"): _NEVER_READ,
    ("gbmrank/metrics/disagreement.py", 125, "ordered[1:] >= ordered[:-1]"): _NO_DISTANCE,
    ("gbmrank/metrics/disagreement.py", 125, "1"): _NO_DISTANCE,  # of -1; 0 is noticed
    ("gbmrank/objectives/push.py", 182, "200.0"): _COST,
    ("gbmrank/objectives/push.py", 149, "1.0"): _NO_PAIRS,
    ("gbmrank/objectives/bregman.py", 154, "20.0 / data.groups.sizes"): _COST,
    ("gbmrank/objectives/listmle.py", 107, "60.0 / data.groups.sizes"): _COST,
    ("gbmrank/objectives/listmle.py", 107, "60.0 * data.groups.sizes - 20.0"): _COST,
    ("gbmrank/objectives/listmle.py", 107, "120.0"): _COST,
    ("gbmrank/objectives/bregman.py", 154, "40.0"): _COST,
    ("gbmrank/objectives/bregman.py", 133, "1.0"): _NO_UTILITY,
    ("gbmrank/objectives/bregman.py", 134, "1.0"): _NO_UTILITY,
    ("gbmrank/objectives/bregman.py", 134, "totals >= 0"): _NO_UTILITY,
    ("gbmrank/objectives/bregman.py", 136, "2.0"): _NO_UTILITY,
    ("gbmrank/objectives/bregman.py", 137, "1.0"): _NO_FACTOR,
    ("gbmrank/objectives/value_linear.py", 145, "abs(way) < 1e-06 * abs(s)"): _SIX_DIGITS,
    ("gbmrank/objectives/value_linear.py", 145, "2e-06"): _SIX_DIGITS,
    ("gbmrank/losses/margin.py", 130, "margin >= 0.0"): "equivalent: both values are 1 at zero",
    ("gbmrank/losses/margin.py", 132, "margin >= 0.0"): "equivalent: both slopes are -1/2 at zero",
    ("gbmrank/losses/convex.py", 64, "slope >= 0.0"): "equivalent: zero has no sign",
    ("gbmrank/kernels/ranking/measures.py", 126, "max"): _TWO_WAYS,
    ("gbmrank/kernels/ranking/measures.py", 127, "depth < k - a"): _TWO_WAYS,
    ("gbmrank/kernels/ranking/measures.py", 152, "some >= 0.0"): _NOBODY_STOPS,
    ("gbmrank/kernels/pairs/sums.py", 93, "len(s) > engines.closed_from"): _EITHER,
    ("gbmrank/kernels/pairs/sums.py", 81, "end + begin"): _ROOM,  # of the Hessian
    ("gbmrank/kernels/pairs/sums.py", 107, "pass"): _TWICE,
    ("gbmrank/kernels/pairs/sums.py", 90, "False"): _TWICE,
    ("gbmrank/kernels/pairs/sums.py", 90, "pass"): _TWICE,
    ("gbmrank/kernels/pairs/sums.py", 85, "pass"): _NO_FACTOR,
    ("gbmrank/kernels/pairs/sums.py", 86, "1.0"): _NO_FACTOR,
    ("gbmrank/kernels/pairs/sums.py", 96, "pass"): _TWICE,
    ("gbmrank/kernels/pairs/sums.py", 137, "pass"): _TWICE,
    ("gbmrank/kernels/pairs/sums.py", 45, "stop + _LANES + 1"): _MASKED,
    ("gbmrank/kernels/pairs/sums.py", 51, "j <= stop"): _NO_PULL,
    ("gbmrank/kernels/pairs/sums.py", 108, "n > engines.closed_from"): _EITHER,
    ("gbmrank/kernels/pairs/sums.py", 100, "pass"): _TWICE,
    ("gbmrank/kernels/pairs/sums.py", 85, "end + begin"): _ROOM,
    ("gbmrank/kernels/pairs/sums.py", 124, "end + begin"): _ROOM,
    ("gbmrank/kernels/pairs/shortcuts.py", 82, "False"): _OTHER_WAY,
    ("gbmrank/kernels/pairs/shortcuts.py", 78, "sigma * width <= widest"): _OTHER_WAY,
    ("gbmrank/kernels/closed/exponential.py", 95, "end + begin"): _NO_FACTOR,
    ("gbmrank/kernels/linear/long.py", 50, "end + begin"): _ROOM,  # of gradient and Hessian
    ("gbmrank/kernels/pairs/sums.py", 113, "0 <= positives < len(s)"): _NO_FACTOR,
    ("gbmrank/kernels/linear/long.py", 71, "end + begin"): _NEXT_CHECK,
    ("gbmrank/kernels/linear/long.py", 74, "end + begin"): _ROOM,
    ("gbmrank/kernels/linear/long.py", 65, "2.0"): _ONLY_SIGN,
    ("gbmrank/kernels/linear/long.py", 62, "5"): _NEVER_READ,
    ("gbmrank/kernels/linear/long.py", 71, "2.0"): _ONLY_SIGN,
    ("gbmrank/kernels/linear/long.py", 104, "end + begin"): _ROOM,
    ("gbmrank/kernels/linear/cells.py", 212, "turn >= 0"): _NEVER_ZERO,
    ("gbmrank/kernels/linear/engine.py", 198, "sign <= 0"): _NEVER_ZERO,
    ("gbmrank/kernels/linear/cells.py", 52, "score >= highs[lane]"): _SAME_SCORE,
    ("gbmrank/kernels/linear/cells.py", 53, "abs(score) < _LARGEST"): _TOO_FAR,
    ("gbmrank/kernels/linear/cells.py", 86, "high_more >= high"): _SAME_SCORE,
    ("gbmrank/kernels/linear/cells.py", 96, "257"): _CELLS,
    ("gbmrank/kernels/linear/cells.py", 121, "count * 2"): _GAPS,
    ("gbmrank/kernels/closed/polynomial.py", 60, "2"): _NEVER_READ,
    ("gbmrank/kernels/closed/polynomial.py", 144, "2"): _NEVER_READ,
    ("gbmrank/kernels/scores.py", 20, "31"): _OTHER_HASH,
    ("gbmrank/kernels/scores.py", 20, "13787848793156543930"): _OTHER_HASH,
    ("gbmrank/kernels/scores.py", 21, "28"): _OTHER_HASH,
    ("gbmrank/kernels/closed/lists.py", 72, "1.0"): _NO_FACTOR,
    (
        "gbmrank/kernels/ranking/measures.py",
        22,
        "1",
    ): "equivalent: a part of 1023 terms, not of 1024",
    (
        "gbmrank/kernels/ranking/measures.py",
        35,
        "1",
    ): "equivalent: parts of 1023 terms, not of 1024",
    ("gbmrank/kernels/ranking/measures.py", 43, "p >= 0.0"): _NOTHING_FOUND,
    ("gbmrank/kernels/scores.py", 22, "total -= mixed ^ mixed >> np.uint64(31)"): _OTHER_HASH,
    ("gbmrank/kernels/linear/cells.py", 57, "abs(scores[i]) < _LARGEST"): _TOO_FAR,
    ("gbmrank/kernels/linear/cells.py", 95, "len(scores) - len(more)"): _CELLS,
    ("gbmrank/kernels/linear/cells.py", 158, "33"): _OTHER_HASH,
    ("gbmrank/kernels/decode/search.py", 83, "values[place] >= values[best]"): _EQUAL_PLACES,
    (
        "gbmrank/kernels/decode/search.py",
        78,
        "after -= (gain[order[k]] + u[order[k], item]) / (k + 2)",
    ): _SHIFTED,
    (
        "gbmrank/kernels/decode/search.py",
        78,
        "(gain[order[k]] + u[order[k], item]) * (k + 2)",
    ): _SHIFTED,
    ("gbmrank/kernels/decode/search.py", 85, "place <= n - 1"): _NEVER_READ,
    ("gbmrank/kernels/decode/search.py", 76, "1.0"): _SHIFTED,
    ("gbmrank/kernels/decode/search.py", 97, "np.abs(u).min"): _WORTH_NOTHING,
    ("gbmrank/kernels/decode/search.py", 66, "2"): _ONLY_SIGN,
    ("gbmrank/kernels/decode/search.py", 32, "2"): "equivalent: some item is always chosen",
    ("gbmrank/kernels/decode/search.py", 45, "np.ones"): _NEVER_READ,
    ("gbmrank/kernels/decode/search.py", 45, "2"): _NEVER_READ,
}


def reason_for(module: str, line: int, after: str) -> str:
    """Return why a mutant survives, or an empty text."""
    return _REASONS.get((module, line, after), "")
