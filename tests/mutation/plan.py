"""Which modules are mutated, and which tests belong to each."""

__all__ = ["MODULES", "SLOW", "tests_of"]

_FORMULAS = "tests/mutation/test_formulas.py"
_METRIC_EDGES = "tests/metrics/test_edges.py"
_CONVENTIONS = "tests/metrics/test_conventions.py"
_DISAGREEMENT = "tests/metrics/test_disagreement.py"
_SCALARS = "tests/losses/test_scalars.py"
_EDGES = "tests/objectives/test_edges.py"
_ENGINES = "tests/objectives/test_engines.py::"
_GRAPHS = "tests/objectives/test_graph_sums.py::"
_INVARIANTS = "tests/objectives/test_invariants.py::"
_LONG = "tests/objectives/test_long_queries.py"
_VALUES = (
    "tests/objectives/test_values.py::test_value_is_the_formula",
    "tests/objectives/test_values.py::test_gradient_is_the_slope_of_the_value",
    "tests/objectives/test_values.py::test_hessian_is_what_its_trait_says",
)
_WEIGHTS = f"{_INVARIANTS}test_weights_multiply"
_FAR = f"{_INVARIANTS}test_scores_far_from_zero_keep_their_digits"
_LOSSES = (_SCALARS, _EDGES, *_VALUES)
_PAIRS = (_EDGES, _WEIGHTS, *_VALUES)
_OBJECTIVES = (
    _FAR,
    _EDGES,
    "tests/objectives/test_rejections.py",
    "tests/objectives/test_printed_numbers.py",
    f"{_ENGINES}test_accuracy_is_reported_where_the_engine_serves",
    f"{_GRAPHS}test_the_minimiser_comes_in_the_order_of_the_rows",
    "tests/data/test_preferences.py::test_a_minimiser_beyond_float64_is_an_error",
    "tests/data/test_preferences.py::test_the_first_minimiser_beyond_float64_is_named",
    *_VALUES,
)
_SHORT = (1, 2, 3, 40)
_SWAPS = "tests/objectives/test_swaps.py"
_NATIVE = "tests/boosters/test_native_gradients.py"
_SWAPPED = (
    "change_of or mean_over or lambda_presets or distances_of or drawn_alike or nearly_exact or "
    "rejected or row_order or underflow or gumbel or neighbours or native_gradients"
)
_PUSHED = f"{_ENGINES}test_engines_of_a_push_agree"
_PUSHES = f"{_ENGINES}test_long_queries_of_a_push_do_not_see_each_other"
_CALIBRATED = "tests/objectives/test_calibrated.py"
_RMSE = "tests/objectives/test_query_rmse.py"


def _engine(name: str, losses: tuple[str, ...]) -> tuple[str, ...]:
    """Sums of one engine over pairs and over levels, against long doubles."""
    pairs = [f"{_ENGINES}test_all_pairs[{name}-{loss}-{n}]" for loss in losses for n in _SHORT]
    return (*pairs, *(f"{_ENGINES}test_levels[{name}-{loss}-2]" for loss in losses))


_QUICK = "test_edges or test_rejections or test_printed_numbers or accuracy or minimiser"
_SMALL = "not integral and not million"
_FEW_ITEMS = (
    "(not long or see_each_other) and not threads and not threaded and not kinks and not flat"
)
# Tests of a module, and pytest's -k: plain Python is slow, so only those it can change.
_PLAN: dict[str, tuple[tuple[str, ...], str]] = {
    "gbmrank/metrics/positional.py": (
        (_FORMULAS, _METRIC_EDGES, _CONVENTIONS, _SWAPS),
        f"({_SMALL} and not test_swaps) or change_of or mean_over",
    ),
    "gbmrank/metrics/precision.py": (
        (_FORMULAS, _METRIC_EDGES, _CONVENTIONS, _SWAPS),
        "(not million and not test_swaps) or change_of or mean_over or underflow or below_1",
    ),
    "gbmrank/metrics/disagreement.py": ((_FORMULAS, _METRIC_EDGES, _DISAGREEMENT), _SMALL),
    "gbmrank/numerics.py": (_LOSSES, "scalars or pairwise or pointwise"),
    "gbmrank/losses/margin.py": (_LOSSES, "scalars or pairwise or pointwise"),
    "gbmrank/losses/composite.py": (
        (*_LOSSES, "tests/theory/test_forms.py"),
        "scalars or pairwise or pointwise or test_forms",
    ),
    "gbmrank/losses/convex.py": (
        (*_LOSSES, "tests/objectives/test_rejections.py"),
        "bregman or generators or linear or regularisers or powers or outside_their_range or eps",
    ),
    "gbmrank/losses/gains.py": (
        ("tests/losses/test_gains.py", "tests/losses/test_utilities.py", _METRIC_EDGES),
        "gain or utilities or threshold or binary or discount",
    ),
    "gbmrank/losses/utilities.py": (
        ("tests/losses/test_utilities.py", _METRIC_EDGES, *_VALUES),
        "test_utilities or pointwise or function_as_gain",
    ),
    "gbmrank/objectives/pairwise.py": (
        (*_OBJECTIVES, _RMSE, "tests/objectives/test_item_weights.py"),
        f"pairwise or query_rmse or {_QUICK}",
    ),
    "gbmrank/objectives/pointwise.py": (_OBJECTIVES, f"pointwise or {_QUICK}"),
    "gbmrank/objectives/levels.py": (
        (
            *_OBJECTIVES,
            f"{_GRAPHS}test_comparison_on_edges_is_its_formula",
            f"{_GRAPHS}test_a_margin_works_on_labels_too",
            f"{_GRAPHS}test_options_that_do_not_go_together_are_rejected",
        ),
        f"comparison or bipartite or graph_sums or {_QUICK}",
    ),
    "gbmrank/objectives/push.py": (_OBJECTIVES, f"push or {_QUICK}"),
    "gbmrank/objectives/value_linear.py": (_OBJECTIVES, f"linear or {_QUICK}"),
    "gbmrank/objectives/listmle.py": (_OBJECTIVES, f"listmle or {_QUICK}"),
    "gbmrank/objectives/bregman.py": (_OBJECTIVES, f"bregman or {_QUICK}"),
    "gbmrank/objectives/calibrated.py": (
        (*_OBJECTIVES, _CALIBRATED),
        f"calibrated or sigmoid_softmax or {_QUICK}",
    ),
    "gbmrank/objectives/swap.py": ((_SWAPS,), _SWAPPED),
    "gbmrank/kernels/pairs/changes.py": ((_SWAPS,), _SWAPPED),
    "gbmrank/kernels/pairs/swaps.py": (
        (_SWAPS, _NATIVE, "tests/objectives/test_item_weights.py"),
        f"{_SWAPPED} or preferred_item",
    ),
    "gbmrank/kernels/ranking/sorting.py": (
        ("tests/metrics/test_ranked.py", _FORMULAS, _METRIC_EDGES),
        "not million",
    ),
    "gbmrank/kernels/ranking/sets.py": (
        (_FORMULAS, "tests/metrics/test_diversity.py"),
        "not seven",
    ),
    "gbmrank/kernels/ranking/measures.py": (
        (_FORMULAS, _METRIC_EDGES, _DISAGREEMENT),
        "not million",
    ),
    "gbmrank/kernels/closed/lists.py": (
        (*_PAIRS, _FAR, _CALIBRATED, "tests/objectives/test_query_sums.py"),
        "pointwise or linear or bregman or listmle or softmax or query_sums or calibrated",
    ),
    "gbmrank/kernels/closed/polynomial.py": (
        (
            *_PAIRS,
            f"{_ENGINES}test_the_squared_margin_far_from_zero_loses_no_digits",
            *_engine("closed", ("squared_margin",)),
            *_engine("sorted", ("hinge", "squared_hinge")),
        ),
        "squared_margin or hinge",
    ),
    "gbmrank/kernels/closed/exponential.py": (
        (
            *_PAIRS,
            _FAR,
            "tests/kernels/test_closed_sums.py",
            f"{_ENGINES}test_a_useful_item_far_above_the_rest_loses_no_digits",
            *_engine("closed", ("exponential", "p_classification")),
        ),
        "closed_sums or exponential or classification or useful or (push and test_edges)",
    ),
    "gbmrank/kernels/pairs/sums.py": (
        (
            *_PAIRS,
            f"{_ENGINES}test_all_pairs[pairs-logistic-40]",
            f"{_ENGINES}test_all_pairs[pairs-squared_hinge-40]",
            _PUSHED,
            f"{_ENGINES}test_a_push_with_a_vanishing_loss_stays_finite",
            f"{_ENGINES}test_long_queries_of_no_weight_are_left_out_however_far[push(p=200)]",
        ),
        "pairwise or pairs or comparison or bipartite or push",
    ),
    "gbmrank/kernels/pairs/dense.py": (
        (
            *_VALUES,
            _FAR,
            f"{_ENGINES}test_single_precision_over_wide_ranges",
            *(f"{_ENGINES}test_all_pairs[pairs-logistic-{n}]" for n in _SHORT),
        ),
        "logistic or single or ranknet",
    ),
    "gbmrank/kernels/scores.py": (
        (*_PAIRS, "tests/kernels/test_rows.py", "tests/kernels/test_callback.py"),
        "test_rows or test_callback or comparison or bipartite",
    ),
    "gbmrank/kernels/linear/engine.py": (
        ("tests/kernels/test_linear_time.py", _LONG, _PUSHED, _PUSHES),
        _FEW_ITEMS,
    ),
    "gbmrank/kernels/linear/cells.py": (
        ("tests/kernels/test_linear_time.py", _LONG, _PUSHED, _PUSHES),
        f"{_FEW_ITEMS} and not asym and not canonical",
    ),
    "gbmrank/kernels/decode/search.py": (
        ("tests/kernels/test_decoders.py", "tests/properties/test_decoders.py"),
        _SMALL,
    ),
}
SLOW = (  # on large data: not for plain Python
    f"{_METRIC_EDGES}::test_a_million_tied_items",
    f"{_METRIC_EDGES}::test_long_tied_blocks_of_grades",
    f"{_METRIC_EDGES}::test_auc_keeps_its_digits_where_one_class_is_rare[1000000",
    "tests/kernels/test_decoders.py::test_a_thousand_queries_of_a_hundred_items_take_seconds",
)
MODULES = tuple(_PLAN)


def tests_of(module: str) -> tuple[str, ...]:
    """Return what pytest is to run for a module."""
    if module not in _PLAN:
        raise SystemExit(f"no tests are known for {module}; add them to tests/mutation/plan.py")
    tests, about = _PLAN[module]
    return (*tests, "-k", about)
