"""Which modules are mutated, and which tests belong to each."""

__all__ = ["MODULES", "SLOW", "tests_of"]

_FORMULAS = "tests/mutation/test_formulas.py"
_VALUES = "tests/objectives/test_values.py::"
_OBJECTIVES = (
    f"{_VALUES}test_value_is_the_formula",
    f"{_VALUES}test_gradient_is_the_slope_of_the_value",
    f"{_VALUES}test_hessian_is_what_its_trait_says",
)
_EDGES_OF_OBJECTIVES = "tests/objectives/test_edges.py"
_WEIGHTS = "tests/objectives/test_invariants.py::test_weights_multiply"
_FAR = "tests/objectives/test_invariants.py::test_scores_far_from_zero_keep_their_digits"
_ONE_BY_ONE = (
    _FAR,
    _EDGES_OF_OBJECTIVES,
    "tests/objectives/test_rejections.py",
    "tests/objectives/test_printed_numbers.py",
    "tests/objectives/test_engines.py::test_accuracy_is_reported_where_the_engine_serves",
    "tests/objectives/test_graph_sums.py::test_the_minimiser_comes_in_the_order_of_the_rows",
    "tests/test_preferences.py::test_a_minimiser_beyond_float64_is_an_error",
    "tests/test_preferences.py::test_the_first_minimiser_beyond_float64_is_named",
)
_QUICK = "test_edges or test_rejections or test_printed_numbers or accuracy or minimiser"
_ENGINES = "tests/objectives/test_engines.py::"
_SHORT = (1, 2, 3, 40)
_LONG = "tests/objectives/test_long_queries.py"
_LINEAR_TIME = "tests/kernels/test_linear_time.py"
_PAIRS = (_EDGES_OF_OBJECTIVES, _WEIGHTS, *_OBJECTIVES)
_EDGES = "tests/metrics/test_edges.py"
_DECODERS = ("tests/test_decoders.py", "tests/properties/test_decoders.py")


def _engine(name: str, losses: tuple[str, ...]) -> tuple[str, ...]:
    """Sums of one engine over pairs and over levels, against long doubles."""
    pairs = [f"{_ENGINES}test_all_pairs[{name}-{loss}-{n}]" for loss in losses for n in _SHORT]
    return (*pairs, *(f"{_ENGINES}test_levels[{name}-{loss}-2]" for loss in losses))


_TESTS: dict[str, tuple[str, ...]] = {
    "gbmrank/metrics/disagreement.py": (_FORMULAS, _EDGES, "tests/metrics/test_disagreement.py"),
    "gbmrank/metrics/": (_FORMULAS, _EDGES, "tests/metrics/test_conventions.py"),
    "gbmrank/losses/": ("tests/losses/test_scalars.py", _EDGES_OF_OBJECTIVES, *_OBJECTIVES),
    "gbmrank/objectives/levels.py": (
        *_ONE_BY_ONE,
        *_OBJECTIVES,
        "tests/objectives/test_graph_sums.py::test_comparison_on_edges_is_its_formula",
        "tests/objectives/test_graph_sums.py::test_a_margin_works_on_labels_too",
        "tests/objectives/test_graph_sums.py::test_options_that_do_not_go_together_are_refused",
    ),
    "gbmrank/objectives/": (*_ONE_BY_ONE, *_OBJECTIVES),
    "gbmrank/kernels/decode/search.py": (
        *_DECODERS,
        *_DECODERS,
        *_DECODERS,
    ),
    "gbmrank/kernels/ranking/measures.py": (
        *(_FORMULAS, _EDGES),
        *(_FORMULAS, _EDGES),
        *(_FORMULAS, _EDGES),
        *(_FORMULAS, "tests/metrics/test_disagreement.py"),
    ),
    "gbmrank/kernels/closed/lists.py": (
        *(_EDGES_OF_OBJECTIVES, _WEIGHTS, *_OBJECTIVES),
        *(_EDGES_OF_OBJECTIVES, _WEIGHTS, _FAR, *_OBJECTIVES),
        *("tests/objectives/test_query_sums.py",),
    ),
    "gbmrank/kernels/pairs/sums.py": (
        *(
            _EDGES_OF_OBJECTIVES,
            "tests/objectives/test_engines.py",
            *_OBJECTIVES,
        ),
        *(
            *_PAIRS,
            *(
                f"{_ENGINES}test_all_pairs[pairs-{loss}-40]"
                for loss in ("logistic", "squared_hinge")
            ),
        ),
        *_PAIRS,
    ),
    "gbmrank/kernels/scores.py": (
        *("tests/kernels/test_rows.py", *_PAIRS),
        *("tests/kernels/test_callback.py",),
    ),
    "gbmrank/kernels/pairs/shortcuts.py": (
        f"{_ENGINES}test_single_precision_over_wide_ranges",
        *(f"{_ENGINES}test_all_pairs[pairs-logistic-{n}]" for n in _SHORT),
        *_OBJECTIVES,
    ),
    "gbmrank/kernels/closed/polynomial.py": (
        *(
            f"{_ENGINES}test_the_squared_margin_far_from_zero_loses_no_digits",
            *_PAIRS,
            *_engine("closed", ("squared_margin",)),
        ),
        *(
            *_PAIRS,
            *_engine("sorted", ("hinge", "squared_hinge")),
        ),
    ),
    "gbmrank/kernels/closed/exponential.py": (
        *(
            "tests/kernels/test_closed_sums.py",
            f"{_ENGINES}test_a_useful_item_far_above_the_rest_loses_no_digits",
            *_PAIRS,
            *_engine("closed", ("exponential", "p_classification")),
        ),
        *(_EDGES_OF_OBJECTIVES, _WEIGHTS, _FAR, *_OBJECTIVES),
    ),
    "gbmrank/kernels/linear/long.py": (
        *(_LONG, f"{_ENGINES}test_all_pairs[linear-logistic-40]"),
        *(_LONG, f"{_ENGINES}test_levels[linear-logistic-2]"),
        *(
            _LONG,
            f"{_ENGINES}test_engines_of_a_push_agree[logistic-4]",
        ),
    ),
    "gbmrank/kernels/linear_": (_LINEAR_TIME,),
    "gbmrank/kernels/": _OBJECTIVES,
    "gbmrank/numerics.py": ("tests/losses/test_scalars.py", *_OBJECTIVES),
    "gbmrank/losses/utilities.py": (
        *(_FORMULAS,),
        *("tests/test_utilities.py", *_OBJECTIVES),
    ),
}
_FEW_ITEMS = "not long and not threads and not threaded and not kinks and not flat"
# Plain Python is slow: of the tests above only those that a module can change.
_ABOUT = {
    "gbmrank/objectives/pairwise.py": f"pairwise or {_QUICK}",
    "gbmrank/objectives/pointwise.py": f"pointwise or {_QUICK}",
    "gbmrank/objectives/levels.py": f"comparison or bipartite or graph_sums or {_QUICK}",
    "gbmrank/objectives/push.py": f"push or {_QUICK}",
    "gbmrank/objectives/value_linear.py": f"linear or {_QUICK}",
    "gbmrank/objectives/listmle.py": f"listmle or {_QUICK}",
    "gbmrank/objectives/bregman.py": f"bregman or {_QUICK}",
    "gbmrank/losses/margin.py": "scalars or pairwise or pointwise",
    "gbmrank/losses/composite.py": "scalars or pairwise or pointwise",
    "gbmrank/losses/convex.py": "bregman or generators"
    " or "
    "linear or regularisers or powers or outside_their_range",
    "gbmrank/metrics/precision.py": "not million",
    "gbmrank/kernels/ranking/measures.py": "not million" + " or " + "not integral",
    "gbmrank/kernels/closed/lists.py": "pointwise or linear or bregman or listmle or softmax",
    "gbmrank/kernels/pairs/sums.py": "push and not lengths and not accuracy and not info"
    " or "
    "pairwise or pairs"
    " or "
    "comparison or bipartite or pairwise_hinges",
    "gbmrank/kernels/scores.py": "test_rows or comparison or bipartite",
    "gbmrank/kernels/pairs/shortcuts.py": "logistic or single or ranknet",
    "gbmrank/kernels/closed/polynomial.py": "squared_margin" + " or " + "hinge",
    "gbmrank/kernels/closed/exponential.py": "closed_sums or exponential or classification "
    "or useful"
    " or "
    "push and (exponential or test_edges)",
    "gbmrank/kernels/linear/engine.py": _FEW_ITEMS,
    "gbmrank/kernels/linear/cells.py": (
        *_FEW_ITEMS,
        *f"{_FEW_ITEMS} and not asym and not canonical",
    ),
}
SLOW = (  # on large data: not for plain Python
    f"{_EDGES}::test_a_million_tied_items",
    f"{_EDGES}::test_long_tied_blocks_of_grades",
    f"{_EDGES}::test_auc_keeps_its_digits_where_one_class_is_rare[1000000",
    "tests/test_decoders.py::test_a_thousand_queries_of_a_hundred_items_take_seconds",
)
MODULES = (
    "gbmrank/metrics/positional.py",
    "gbmrank/metrics/precision.py",
    "gbmrank/metrics/positional.py",
    "gbmrank/metrics/positional.py",
    "gbmrank/metrics/precision.py",
    "gbmrank/metrics/disagreement.py",
    "gbmrank/losses/margin.py",
    "gbmrank/losses/composite.py",
    "gbmrank/losses/convex.py",
    "gbmrank/losses/convex.py",
    "gbmrank/objectives/pairwise.py",
    "gbmrank/objectives/pointwise.py",
    "gbmrank/objectives/levels.py",
    "gbmrank/objectives/push.py",
    "gbmrank/objectives/value_linear.py",
    "gbmrank/objectives/listmle.py",
    "gbmrank/objectives/bregman.py",
    "gbmrank/kernels/ranking/measures.py",
    "gbmrank/kernels/ranking/measures.py",
    "gbmrank/kernels/ranking/measures.py",
    "gbmrank/kernels/ranking/measures.py",
    "gbmrank/kernels/closed/lists.py",
    "gbmrank/kernels/closed/lists.py",
    "gbmrank/kernels/closed/lists.py",
    "gbmrank/kernels/pairs/sums.py",
    "gbmrank/kernels/pairs/sums.py",
    "gbmrank/kernels/pairs/sums.py",
    "gbmrank/kernels/pairs/shortcuts.py",
    "gbmrank/kernels/closed/polynomial.py",
    "gbmrank/kernels/closed/exponential.py",
    "gbmrank/kernels/closed/polynomial.py",
    "gbmrank/kernels/closed/exponential.py",
    "gbmrank/kernels/scores.py",
    "gbmrank/kernels/scores.py",
    "gbmrank/kernels/linear/long.py",
    "gbmrank/kernels/linear/long.py",
    "gbmrank/kernels/linear/long.py",
    "gbmrank/kernels/linear/engine.py",
    "gbmrank/kernels/linear/cells.py",
    "gbmrank/kernels/linear/cells.py",
    "gbmrank/kernels/decode/search.py",
    "gbmrank/kernels/decode/search.py",
    "gbmrank/kernels/decode/search.py",
)


def tests_of(module: str) -> tuple[str, ...]:
    """Return what pytest is to run: the longest entry that the path of a module begins with."""
    found = max((key for key in _TESTS if module.startswith(key)), key=len, default=None)
    if found is None:
        raise SystemExit(f"no tests are known for {module}; add them to tests/mutation/plan.py")
    about = str(_ABOUT.get(module, "not integral and not million"))
    return (*_TESTS[found], "-k", about)
