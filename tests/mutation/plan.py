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
    "tests/objectives/test_refusals.py",
    "tests/objectives/test_printed_numbers.py",
    "tests/objectives/test_engines.py::test_accuracy_is_reported_where_the_engine_serves",
    "tests/objectives/test_graph_sums.py::test_the_minimiser_comes_in_the_order_of_the_rows",
    "tests/test_preferences.py::test_a_minimiser_beyond_float64_is_an_error",
    "tests/test_preferences.py::test_the_first_minimiser_beyond_float64_is_named",
)
_QUICK = "test_edges or test_refusals or test_printed_numbers or accuracy or minimiser"
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
    "gbmrank/kernels/set_decode.py": _DECODERS,
    "gbmrank/kernels/map_decode.py": _DECODERS,
    "gbmrank/kernels/graph_decode.py": _DECODERS,
    "gbmrank/kernels/positional.py": (_FORMULAS, _EDGES),
    "gbmrank/kernels/average_precision.py": (_FORMULAS, _EDGES),
    "gbmrank/kernels/cascade.py": (_FORMULAS, _EDGES),
    "gbmrank/kernels/disagreement.py": (_FORMULAS, "tests/metrics/test_disagreement.py"),
    "gbmrank/kernels/items.py": (_EDGES_OF_OBJECTIVES, _WEIGHTS, *_OBJECTIVES),
    "gbmrank/kernels/listwise.py": (_EDGES_OF_OBJECTIVES, _WEIGHTS, _FAR, *_OBJECTIVES),
    "gbmrank/kernels/query_sums.py": ("tests/objectives/test_query_sums.py",),
    "gbmrank/kernels/push.py": (
        _EDGES_OF_OBJECTIVES,
        "tests/objectives/test_engines.py",
        *_OBJECTIVES,
    ),
    "gbmrank/kernels/all_pairs.py": (
        *_PAIRS,
        *(f"{_ENGINES}test_all_pairs[pairs-{loss}-40]" for loss in ("logistic", "squared_hinge")),
    ),
    "gbmrank/kernels/level_pairs.py": _PAIRS,
    "gbmrank/kernels/rows.py": ("tests/kernels/test_rows.py", *_PAIRS),
    "gbmrank/kernels/logistic.py": (
        f"{_ENGINES}test_single_precision_over_wide_ranges",
        *(f"{_ENGINES}test_all_pairs[pairs-logistic-{n}]" for n in _SHORT),
        *_OBJECTIVES,
    ),
    "gbmrank/kernels/square_sums.py": (
        f"{_ENGINES}test_the_squared_margin_far_from_zero_loses_no_digits",
        *_PAIRS,
        *_engine("closed", ("squared_margin",)),
    ),
    "gbmrank/kernels/exponential_sums.py": (
        "tests/kernels/test_closed_sums.py",
        f"{_ENGINES}test_a_useful_item_far_above_the_rest_loses_no_digits",
        *_PAIRS,
        *_engine("closed", ("exponential", "p_classification")),
    ),
    "gbmrank/kernels/hinge_sums.py": (*_PAIRS, *_engine("sorted", ("hinge", "squared_hinge"))),
    "gbmrank/kernels/exponential_push.py": (_EDGES_OF_OBJECTIVES, _WEIGHTS, _FAR, *_OBJECTIVES),
    "gbmrank/kernels/long_pairs.py": (_LONG, f"{_ENGINES}test_all_pairs[linear-logistic-40]"),
    "gbmrank/kernels/long_levels.py": (_LONG, f"{_ENGINES}test_levels[linear-logistic-2]"),
    "gbmrank/kernels/long_push.py": (_LONG, f"{_ENGINES}test_engines_of_a_push_agree[logistic-4]"),
    "gbmrank/kernels/linear_": (_LINEAR_TIME,),
    "gbmrank/kernels/callback.py": ("tests/kernels/test_callback.py",),
    "gbmrank/kernels/": _OBJECTIVES,
    "gbmrank/numerics.py": ("tests/losses/test_scalars.py", *_OBJECTIVES),
    "gbmrank/ranking.py": (_FORMULAS,),
    "gbmrank/utilities.py": ("tests/test_utilities.py", *_OBJECTIVES),
}
_FEW_ITEMS = "not long and not threads and not threaded and not kinks and not flat"
# Plain Python is slow: of the tests above only those that a module can change.
_ABOUT = {
    "gbmrank/objectives/pairwise.py": f"pairwise or {_QUICK}",
    "gbmrank/objectives/pointwise.py": f"pointwise or {_QUICK}",
    "gbmrank/objectives/levels.py": f"comparison or bipartite or graph_sums or {_QUICK}",
    "gbmrank/objectives/push.py": f"push or {_QUICK}",
    "gbmrank/objectives/linear.py": f"linear or {_QUICK}",
    "gbmrank/objectives/listmle.py": f"listmle or {_QUICK}",
    "gbmrank/objectives/bregman.py": f"bregman or {_QUICK}",
    "gbmrank/losses/margin.py": "scalars or pairwise or pointwise",
    "gbmrank/losses/composite.py": "scalars or pairwise or pointwise",
    "gbmrank/losses/bregman.py": "bregman or generators",
    "gbmrank/losses/regularisers.py": "linear or regularisers or powers or outside_their_range",
    "gbmrank/metrics/cascade.py": "not million",
    "gbmrank/kernels/cascade.py": "not million",
    "gbmrank/kernels/positional.py": "not integral",
    "gbmrank/kernels/items.py": "pointwise or linear or bregman",
    "gbmrank/kernels/listwise.py": "listmle or softmax",
    "gbmrank/kernels/push.py": "push and not lengths and not accuracy and not info",
    "gbmrank/kernels/all_pairs.py": "pairwise or pairs",
    "gbmrank/kernels/level_pairs.py": "comparison or bipartite or pairwise_hinges",
    "gbmrank/kernels/rows.py": "test_rows or comparison or bipartite",
    "gbmrank/kernels/logistic.py": "logistic or single or ranknet",
    "gbmrank/kernels/square_sums.py": "squared_margin",
    "gbmrank/kernels/exponential_sums.py": "closed_sums or exponential or classification or useful",
    "gbmrank/kernels/hinge_sums.py": "hinge",
    "gbmrank/kernels/exponential_push.py": "push and (exponential or test_edges)",
    "gbmrank/kernels/linear_time.py": _FEW_ITEMS,
    "gbmrank/kernels/linear_cells.py": _FEW_ITEMS,
    "gbmrank/kernels/linear_grid.py": f"{_FEW_ITEMS} and not asym and not canonical",
}
SLOW = (  # on large data: not for plain Python
    f"{_EDGES}::test_a_million_tied_items",
    f"{_EDGES}::test_long_tied_blocks_of_grades",
    f"{_EDGES}::test_auc_keeps_its_digits_where_one_class_is_rare[1000000",
    "tests/test_decoders.py::test_a_thousand_queries_of_a_hundred_items_take_seconds",
)
MODULES = (
    "gbmrank/metrics/binary.py",
    "gbmrank/metrics/cascade.py",
    "gbmrank/metrics/graded.py",
    "gbmrank/metrics/positional.py",
    "gbmrank/metrics/precision.py",
    "gbmrank/metrics/disagreement.py",
    "gbmrank/losses/margin.py",
    "gbmrank/losses/composite.py",
    "gbmrank/losses/bregman.py",
    "gbmrank/losses/regularisers.py",
    "gbmrank/objectives/pairwise.py",
    "gbmrank/objectives/pointwise.py",
    "gbmrank/objectives/levels.py",
    "gbmrank/objectives/push.py",
    "gbmrank/objectives/linear.py",
    "gbmrank/objectives/listmle.py",
    "gbmrank/objectives/bregman.py",
    "gbmrank/kernels/positional.py",
    "gbmrank/kernels/average_precision.py",
    "gbmrank/kernels/cascade.py",
    "gbmrank/kernels/disagreement.py",
    "gbmrank/kernels/items.py",
    "gbmrank/kernels/listwise.py",
    "gbmrank/kernels/query_sums.py",
    "gbmrank/kernels/push.py",
    "gbmrank/kernels/all_pairs.py",
    "gbmrank/kernels/level_pairs.py",
    "gbmrank/kernels/logistic.py",
    "gbmrank/kernels/square_sums.py",
    "gbmrank/kernels/exponential_sums.py",
    "gbmrank/kernels/hinge_sums.py",
    "gbmrank/kernels/exponential_push.py",
    "gbmrank/kernels/rows.py",
    "gbmrank/kernels/callback.py",
    "gbmrank/kernels/long_pairs.py",
    "gbmrank/kernels/long_levels.py",
    "gbmrank/kernels/long_push.py",
    "gbmrank/kernels/linear_time.py",
    "gbmrank/kernels/linear_cells.py",
    "gbmrank/kernels/linear_grid.py",
    "gbmrank/kernels/set_decode.py",
    "gbmrank/kernels/graph_decode.py",
    "gbmrank/kernels/map_decode.py",
)


def tests_of(module: str) -> tuple[str, ...]:
    """Return what pytest is to run: the longest entry that the path of a module begins with."""
    found = max((key for key in _TESTS if module.startswith(key)), key=len, default=None)
    if found is None:
        raise SystemExit(f"no tests are known for {module}; add them to tests/mutation/plan.py")
    return (*_TESTS[found], "-k", _ABOUT.get(module, "not integral and not million"))
