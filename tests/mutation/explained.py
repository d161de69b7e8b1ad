"""What is known about mutants that no test can or need notice."""

from collections.abc import Iterator

__all__ = ["explanations", "reason_for"]

_ONLY_SPEED = "equivalent: how deep a ranking is sorted changes its time and no value"
_COST = "equivalent: an estimate of the work, by which queries are shared out to threads"
_NEVER_READ = "equivalent: a cell that is the same for all, or is never read"
_SIX_DIGITS = "equivalent: so near the best score both curvatures agree to six digits"
_NO_UTILITY = "equivalent: without utility every term of a softmax loss is zero on its own"
_TWO_WAYS = "equivalent: the recurrence and the integral lead to the same number"
_SHIFTED = "equivalent: the value of every place is shifted alike, and only their order is used"
_NO_FACTOR = "equivalent: such a query has the factor 0"
_NOBODY_STOPS = "equivalent: a block at which nobody stops adds zero by the formulas, too"
_ONLY_SIGN = "equivalent: of this number only the sign is looked at"
_TWICE = "equivalent: a query that is done is summed a second time, to the same number"
_NO_DISTANCE = "equivalent: equal labels become levels at no distance, which add zero"
_EQUAL_PLACES = "equivalent: of two places of equal value either will do"
_WORTH_NOTHING = "equivalent: a move that gains less than rounding is made, or is not"
_NO_PAIRS = "equivalent: the terms of a query without pairs are zero by the formulas, too"
_NO_MORE_ROWS = "equivalent: there are no rows at the ranks that come on top"
_UNDEFINED = "equivalent: divided by zero instead of NaN; either way the query has no value"
_AS_MANY = "equivalent: both have as many entries"
_HASH = "equivalent: another hash, as good as this one"
_NO_GAIN = "equivalent: an item with itself, or two without utility: both terms cancel"
# Module, function, text of the line, code after: the reason. When the text changes, its mutants
# are open again, and test_plan.py asks for the explanation to be revised.
_REASONS: dict[str, dict[str, dict[str, dict[str, str]]]] = {
    "gbmrank/metrics/positional.py": {
        "AbstractPositional.bind": {
            "groups, longest = data.groups, int(data.groups.sizes.max(initial=1))": {
                "2": _NO_MORE_ROWS
            },
            "depth = counted if counted < longest else None": {
                "counted >= longest": _ONLY_SPEED,
                "counted <= longest": _ONLY_SPEED,
            },
        },
        "AbstractPositional.swap_terms": {
            ("scale, cuts = 1.0 / self.divisors(sizes), np.minimum(sizes, self._counted(table))"): {
                "np.maximum": _ONLY_SPEED
            },
        },
        "AbstractPositional._counted": {
            (
                "return len(table) if self.upwards else "
                "int(np.flatnonzero(table)[-1:].max(initial=0)) + 1"
            ): {"1": _ONLY_SPEED},
        },
    },
    "gbmrank/metrics/precision.py": {
        "_AbstractOfItems.swap_terms": {
            "ones = np.ones(int(data.groups.sizes.max(initial=1)))": {"2": _NO_MORE_ROWS},
        },
        "_above_zero": {
            "return np.where(counts > 0, counts, np.nan)": {"counts >= 0": _UNDEFINED},
        },
    },
    "gbmrank/metrics/disagreement.py": {
        "_label_levels": {
            "higher = np.zeros(groups.n_rows, dtype=np.int64)": {"np.ones": _NEVER_READ},
            # "1" in place of "-1"; in place of 0 it is noticed
            "higher[1:] = (ordered[1:] > ordered[:-1]) & (place[1:] > 0)": {
                "ordered[1:] >= ordered[:-1]": _NO_DISTANCE,
                "1": _NO_DISTANCE,
            },
            "n_levels = steps[groups.offsets[1:] - 1] + 1": {"2": _NEVER_READ},
        },
    },
    "gbmrank/losses/margin.py": {
        "canonical_boosting": {
            "value = small if margin > 0.0 else root + abs(half)": {
                "margin >= 0.0": "equivalent: both values are 1 at zero"
            },
            "slope = -slope_gap if margin > 0.0 else slope_gap - 1.0": {
                "margin >= 0.0": "equivalent: both slopes are -1/2 at zero"
            },
        },
    },
    "gbmrank/losses/convex.py": {
        "_power_inverse": {
            "return root if slope > 0.0 else -root": {
                "slope >= 0.0": "equivalent: zero has no sign"
            },
        },
    },
    "gbmrank/losses/gains.py": {
        "_called": {
            "alone = float(np.asarray(gain(labels[at : at + 1].copy())).reshape(-1)[0])": {
                "2": "equivalent: a gain of each label by itself has the same first value for two"
            },
        },
    },
    "gbmrank/objectives/pairwise.py": {
        "Pairwise.bind": {
            ("utilities = np.nan_to_num(utilities, nan=0.0) * (1.0 if items is None else items)"): {
                "1.0": _NO_FACTOR
            },
        },
        "QueryRMSE.bind": {
            "utilities = np.nan_to_num(utilities, nan=0.0)": {"1.0": _NO_FACTOR},
        },
    },
    "gbmrank/objectives/calibrated.py": {
        "_items": {
            (
                "data.groups.offsets, np.nan_to_num(utilities, nan=0.0), anchors, scale, "
                "np.empty(0)"
            ): {"1.0": _NO_FACTOR},
        },
    },
    "gbmrank/objectives/pointwise.py": {
        "bind_items": {
            "5.0 * data.groups.sizes + 20.0,": {"10.0": _COST},
        },
        "check_range": {
            "bad = np.flatnonzero((utilities < 0) | (utilities > bound * (1.0 + 1e-12)))": {
                "utilities >= bound * (1.0 + 1e-12)": "equivalent: no utility is that number"
            },
        },
    },
    "gbmrank/objectives/levels.py": {
        "_best_ranks": {
            "new_level = np.ones(len(labels), dtype=bool)": {"np.zeros": _NEVER_READ},
        },
    },
    "gbmrank/objectives/push.py": {
        "Push.bind": {
            'scale = query_scale(data, "none") * np.where(positives * negatives > 0, 1.0, 0.0)': {
                "1.0": _NO_PAIRS
            },
            "data.groups.sizes + 100.0,": {"200.0": _COST, "data.groups.sizes - 100.0": _COST},
        },
    },
    "gbmrank/objectives/value_linear.py": {
        "with_secant": {
            "near = abs(way) <= 1e-6 * abs(s)": {
                "abs(way) < 1e-06 * abs(s)": _SIX_DIGITS,
                "2e-06": _SIX_DIGITS,
            },
        },
    },
    "gbmrank/objectives/listmle.py": {
        "_target_order": {
            "place = np.arange(len(queries)) - data.groups.spread(data.groups.offsets[:-1])": {
                "np.arange(len(queries)) + data.groups.spread(data.groups.offsets[:-1])": (
                    "equivalent: all places of a query are shifted alike, and only sorted"
                )
            },
        },
        "ListMLE.bind": {
            "60.0 * sizes + 20.0,": {
                "60.0 / sizes": _COST,
                "60.0 * sizes - 20.0": _COST,
                "120.0": _COST,
                "40.0": _COST,
            },
        },
    },
    "gbmrank/objectives/bregman.py": {
        "Bregman._bind_softmax": {
            "totals = query_sums(np.nan_to_num(utilities, nan=0.0), data.groups)": {
                "1.0": _NO_UTILITY
            },
            "scale = np.where(totals > 0, scale, 0.0)": {
                "1.0": _NO_UTILITY,
                "totals >= 0": _NO_UTILITY,
            },
            "shares = data.groups.spread(np.where(totals > 0, totals, 1.0)) if divided else 1.0": {
                "2.0": _NO_UTILITY
            },
            "utilities = np.nan_to_num(utilities, nan=0.0) / shares": {"1.0": _NO_FACTOR},
            "20.0 * data.groups.sizes + 20.0,": {
                "20.0 / data.groups.sizes": _COST,
                "40.0": _COST,
            },
        },
    },
    "gbmrank/objectives/swap.py": {
        "_hashes": {
            (
                "words = words + (place.astype(np.uint64) + np.uint64(1)) * "
                "np.uint64(0x9E3779B97F4A7C15)"
            ): {"2": _HASH, "place.astype(np.uint64) - np.uint64(1)": _HASH},
        },
        "_BoundSwap.__init__": {
            "costs = self.rule.draws * sizes * (30.0 + 2.0 * below) + 100.0": {
                "self.rule.draws * sizes * (30.0 + 2.0 * below) - 100.0": _COST,
                "self.rule.draws / sizes": _COST,
            },
            (
                "below = 1.0 if self.rule.neighbours else np.minimum(sizes, "
                "float(self.rule.truncation))"
            ): {"2.0": _COST},
        },
    },
    "gbmrank/kernels/pairs/changes.py": {
        "add_noise": {
            "out[first + i] = _uniform(key, first - drawn + i)": {
                "first - drawn - i": "equivalent: other numbers of the generator, none twice"
            },
        },
        "first_relevant": {
            "at_found = queries.discounts[begin + found] if found < n else 0.0": {
                "1.0": _NEVER_READ
            },
        },
    },
    "gbmrank/kernels/pairs/dense.py": {
        "dense_all": {
            "for j in range(i if i < stop else stop):": {
                "i <= stop": "equivalent: both numbers are the same then"
            },
        },
        "dense_different": {
            "one = buffers[0].dtype.type(1.0)": {"1": "equivalent: all buffers have one type"},
        },
    },
    "gbmrank/kernels/scores.py": {
        "middle_and_range": {
            "lowest, highest = s[0], s[0]": {
                "1": "equivalent: all scores are compared; a query of one item has no pairs"
            },
        },
    },
    "gbmrank/kernels/linear/engine.py": {
        "sum_push": {
            "price(items.starts, positives, Span(0, len(served), 0), seen, results, sums)": {
                "1": _NEVER_READ
            },
        },
        "_interact": {
            "costs = 60.0 * cells * np.minimum(cells, highest - lowest + 1)": {"2": _COST},
        },
        "LongItems.__init__": {
            "for begin, end, count in zip(blocks[:-1], blocks[1:], runs, strict=True)": {
                "False": _AS_MANY
            },
        },
        "_spread": {
            (
                "extra = [numbers[b : b + n] for b, n in zip(runs.begin, more, strict=True) "
                "if n > 0]"
            ): {"False": _AS_MANY},
        },
    },
    "gbmrank/kernels/ranking/sorting.py": {
        "sort_down": {
            ("bucket = bucket if bucket < n else n - 1  # rounding may lead one past the end"): {
                "2": _ONLY_SPEED
            },
        },
        "settle": {
            "if stop - start > 1:": {"stop - start >= 1": _ONLY_SPEED},
        },
    },
    "gbmrank/kernels/ranking/measures.py": {
        "_over_times": {
            "if log_on < 2.0 * _LOG_NEGLIGIBLE: break": {
                "pass": "equivalent: adds terms that are negligible in float64"
            },
        },
        "positional_per_query": {
            "total, part, terms = 0.0, 0.0, 0": {
                "1": "equivalent: a part of 1023 terms, not of 1024"
            },
            "total, part, terms = total + part, 0.0, 0": {
                "1": "equivalent: parts of 1023 terms, not of 1024"
            },
        },
        "_block": {
            "most = min(depth * len(stops) // _LONG, _MANY)": {"max": _TWO_WAYS},
            "if depth <= k - a and most > 0:": {"depth < k - a": _TWO_WAYS},
        },
        "cascade_per_query": {
            "elif some > 0.0:": {"some >= 0.0": _NOBODY_STOPS},
        },
    },
    "gbmrank/kernels/closed/lists.py": {
        "query_values": {
            "value = 0.0": {"1.0": _NO_FACTOR},
        },
        "_suffix_levels": {
            "if s[k] > top[k + 1]:": {"s[k] >= top[k + 1]": "equivalent: both maxima are the same"},
        },
    },
    "gbmrank/kernels/closed/polynomial.py": {
        "_levels": {
            "weight = np.zeros(n + 1)": {"2": _NEVER_READ},
        },
        "squared_margin_levels": {
            "above = np.zeros((2, n + 1))": {"2": _NEVER_READ},
        },
    },
    "gbmrank/kernels/closed/exponential.py": {
        "push_values": {
            "if 0 < positives < end - begin and queries.scale[q] != 0.0:": {
                "end + begin": _NO_FACTOR
            },
        },
    },
    "gbmrank/kernels/pairs/sums.py": {
        "all_gradients": {
            "pull = pull if j < stop else 0.0": {"j <= stop": _NO_GAIN},
            "if served[q]: continue": {"pass": _TWICE},
        },
        "all_values": {
            "if served[q]: continue": {"pass": _TWICE},
        },
        "push_values": {
            "if served[q]: continue": {"pass": _TWICE},
        },
    },
    "gbmrank/kernels/decode/search.py": {
        "_topological": {
            "before[chosen] = -1": {"2": _ONLY_SIGN},
        },
        "_best_place": {
            "before, own = 0.0, u[item, item]": {"1.0": _SHIFTED},
            "after = 0.0": {"1.0": _SHIFTED},
            "after += (gain[order[k]] + u[order[k], item]) / (k + 2)": {
                "after -= (gain[order[k]] + u[order[k], item]) / (k + 2)": _SHIFTED,
                "(gain[order[k]] + u[order[k], item]) * (k + 2)": _SHIFTED,
            },
            "if values[place] > values[best]:": {"values[place] >= values[best]": _EQUAL_PLACES},
            "if place < n - 1:": {"place <= n - 1": _NEVER_READ},
        },
        "_move_items": {
            "enough = 1e-12 * n * np.abs(u).max()": {"np.abs(u).min": _WORTH_NOTHING},
        },
        "_best_next": {
            "best, chosen = -np.inf, -1": {"2": "equivalent: some item is always chosen"},
        },
        "_exact_order": {
            "to_go = np.zeros(everything + 1)": {"np.ones": _NEVER_READ, "2": _NEVER_READ},
        },
    },
}


def reason_for(module: str, function: str, text: str, after: str) -> str:
    """Return why a mutant survives, or an empty text."""
    return _REASONS.get(module, {}).get(function, {}).get(text, {}).get(after, "")


def explanations() -> Iterator[tuple[str, str, str, str]]:
    """Yield module, function, text of the line and code after of all that is explained."""
    for module, functions in _REASONS.items():
        for function, lines in functions.items():
            for text, changes in lines.items():
                for after in changes:
                    yield module, function, text, after
