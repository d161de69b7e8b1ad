"""Which compositions the suite runs, taken from the registry, and data to run them on."""

import contextlib
import dataclasses
import functools
import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

import gbmrank
from gbmrank import GbmrankError, ParameterError, RankingData
from gbmrank.registry import GENERATORS, LOSSES, OBJECTIVES, OUTERS, REGULARISERS, UTILITIES
from tests.formulas import PLAIN

KINDS = {
    "loss": LOSSES,
    "generator": GENERATORS,
    "utility": UTILITIES,
    "outer": OUTERS,
    "regulariser": REGULARISERS,
}
THRESHOLD = 2.0
SIZES = (5, 1, 4, 7, 3, 6, 2)
ROWS = sum(SIZES)
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
EVERY_TIME = ("logistic", "exponential", "hinge", "asymmetric_a", "brier_sigmoid")


def is_nightly(text: str) -> bool:
    """Whether a composition is left to ``make nightly``.

    Every pair of template and loss compiles kernels of its own; in plain Python all of them run.
    The pair templates share the loss functions, so all losses run in ``pairwise`` and a few in
    the others; what is special about the last of them, a curvature of both signs,
    ``comparison`` has as well as ``push``.
    """
    found = re.match(r"(comparison|bipartite|push)\(loss=(\w+)", text)
    return (not PLAIN and found is not None) and (
        found[2] not in EVERY_TIME or found.groups() == ("push", "brier_sigmoid")
    )


COMPILED = (
    "bipartite(loss=logistic",
    "bregman(loss=softmax_ce",
    "comparison(loss=logistic",
    "linear",
    "listmle",
    "mix(comparison(loss=logistic), bregman(loss=softmax_ce",
    "pairwise(loss=logistic",
    "pointwise(loss=logistic",
    "query_rmse",
    "swap(loss=logistic, metric=ndcg",
)


@functools.cache
def is_compiled_each_time(text: str) -> bool:
    """Whether ``make test`` compiles a composition: one of nearly every template."""
    if PLAIN:
        return False
    with contextlib.suppress(GbmrankError):
        text = str(gbmrank.objective(text))
    return text.startswith(COMPILED)


def builtin(registry: Any) -> list[str]:
    """Names that come with gbmrank, presets left out."""
    return [
        name
        for name, entries in registry.entries.items()
        if entries[0].origin.distribution == "gbmrank" and registry.preset(name) is None
    ]


def composition_of(preset: str) -> str:
    found = OBJECTIVES.preset(preset)
    return "" if found is None else found.name


# The weights of a swap follow the ranking, so the loss is not what its gradient is the slope of:
# test_swaps.py has its own suite.
TEMPLATES = [name for name in builtin(OBJECTIVES) if name not in ("mix", "swap")]
PRESETS = [name for name in OBJECTIVES.entries if composition_of(name) not in ("", "swap")]
SWAPS = ["swap", *(name for name in OBJECTIVES.entries if composition_of(name) == "swap")]


def field_kinds(template: str) -> dict[str, str]:
    fields = dataclasses.fields(OBJECTIVES.get(template))
    return {field.name: field.metadata["kind"] for field in fields if "kind" in field.metadata}


def options(template: str, **parts: str) -> dict[str, Any]:
    """Parameters that a template or a target needs on labels 0 to 4."""
    given: dict[str, Any] = dict(parts)
    known = {field.name for field in dataclasses.fields(OBJECTIVES.get(template))}
    target = parts.get("target", "")
    if target in ("identity", "net_degree") and "eta" in known:
        given["eta"] = 4.0
    if target and "threshold" in {f.name for f in dataclasses.fields(UTILITIES.get(bare(target)))}:
        given["target"] = f"{bare(target)}(threshold={THRESHOLD:g})"
    elif "threshold" in known and "target" not in known:
        given["threshold"] = THRESHOLD
    return given


def bare(target: str) -> str:
    return target.partition("@")[0].partition("(")[0]


def _grid(template: str) -> Iterator[dict[str, str]]:
    """Every part with the others at their defaults, and every loss with a few targets."""
    kinds = field_kinds(template)
    yield {}
    for field, kind in kinds.items():
        for name in builtin(KINDS[kind]):
            if name != "net_degree":  # negative: for the squared loss, below
                yield {field: name}
    if {"loss", "target"} <= kinds.keys():
        for loss in builtin(KINDS[kinds["loss"]]):
            for target in ("ndcg@3", "precision", "eru(neutral=1)"):
                yield {"loss": loss, "target": target}
        for target in builtin(UTILITIES):
            yield {"loss": "squared", "target": target}


MORE = (
    "comparison(weights=gain_discount)",
    "comparison(weights=gain_discount, loss=squared_hinge)",
    "comparison(weights=gain_discount(gain=linear, k=3))",
    "comparison(weights=[3, 2, 1])",
    "comparison(loss=logistic(sigma=2))",
    "pairwise(loss=p_classification(p=0.5), target=dcg)",
    "pairwise(loss=logistic(sigma=0.7), target=dcg)",
    "pointwise(loss=squared_hinge(t=2), target=dcg, eta=15)",
    "pointwise(loss=differentiable_hinge(alpha=0.2), target=dcg)",
    "pointwise(loss=logistic(sigma=3), target=identity, eta=4)",
    "push(threshold=2, p=1)",
    "push(threshold=2, p=1.5, loss=squared_hinge)",
    "push(threshold=2, p=0.5, loss=exponential)",
    "push(threshold=2, p=2, loss=exponential, form=log)",
    "push(threshold=2, p=3, loss=exponential, engine=pairs)",
    "linear(regulariser=power(q=1.5), nu=2)",
    "linear(regulariser=power(q=4))",
    "linear(regulariser=power, hessian=exact)",
    "linear(regulariser=cosh, hessian=exact)",
    "listmle(seed=none)",
    "listmle(weights=gain_discount)",
    "listmle(weights=gain_discount(discount=[1, 0.5, 0.25], k=2))",
    "listmle(weights=[3, 2, 1])",
    "sigmoid_softmax(hessian=exact)",
    "calibrated_softmax(anchor=0.3)",
    "mix(ranknet, softmax, weights=[0.7, 0.3])",
    "mix(pairwise(loss=squared), pointwise(target=dcg), listmle)",
)
_BINARY_PRESETS = (
    "p_classification",
    "asymmetric_a",
    "asymmetric_b",
    "map_diagonal",
    "pnorm_push",
    "rcr",
)


@functools.cache
def compositions() -> tuple[str, ...]:
    """Texts of every composition that is accepted."""
    texts: dict[str, None] = {}
    for template in TEMPLATES:
        for parts in _grid(template):
            try:
                texts[str(gbmrank.objective(template, **options(template, **parts)))] = None
            except ParameterError:
                continue  # what is rejected is the matter of test_rejections.py
    for text in (*MORE, *PRESETS):
        texts[str(gbmrank.objective(text))] = None
    return tuple(texts)


@functools.cache
def one_per_kernel() -> tuple[str, ...]:
    """One composition for every template with every loss: each compiles its own kernels."""
    chosen: dict[tuple[object, ...], str] = {}
    for text in compositions():
        template = gbmrank.objective(text).template
        parts = [getattr(template, name, None) for name in ("loss", "g", "regulariser", "form")]
        chosen.setdefault((template.name, str(parts), getattr(template, "weights", None)), text)
    return tuple(chosen.values())


@functools.cache
def labels_for(text: str) -> Any:
    """Grades 0 to 4, all different where there are few enough items; 0 and 1 if need be."""
    rng = np.random.default_rng(7)
    grades = np.concatenate([rng.permutation(7)[:n] % 7 for n in SIZES]).astype(float)
    labels = np.minimum(grades * 4 / 6, 4.0)  # seven levels between 0 and 4, untied
    if text in binary_texts():
        labels = (labels >= THRESHOLD).astype(float)
    elif "net_degree" not in text:
        labels = np.round(labels * 2) / 2
    if "listmle" in text:
        labels = grades * 4 / 6
    return labels


@functools.cache
def binary_texts() -> frozenset[str]:
    return frozenset(str(gbmrank.objective(name)) for name in _BINARY_PRESETS)


def scores_for(spread: float = 1.0, seed: int = 11) -> Any:
    return spread * np.random.default_rng(seed).normal(size=ROWS)


def template_of(text: str) -> Any:
    """The composition behind a text; its fields depend on the template."""
    return gbmrank.objective(text).template


def bound(text: str, labels: Any = None, sizes: Any = SIZES, weight: Any = None) -> Any:
    labels = labels_for(text) if labels is None else labels
    data = RankingData.from_arrays(labels, group=sizes, weight=weight)
    return gbmrank.objective(text).bind(data)


def slices(sizes: Any = SIZES) -> list[slice]:
    ends = np.concatenate([[0], np.cumsum(sizes)])
    return [slice(a, b) for a, b in itertools.pairwise(ends.tolist())]


def differences(evaluate: Any, scores: Any, step: float) -> Any:
    """Central fourth-order differences, one position of every query at a time.

    ``evaluate`` maps scores to one column per query (losses) or per row (gradients).
    """
    out = np.empty(ROWS)
    for place in range(max(SIZES)):
        rows = np.array([part.start + place for part in slices() if place < part.stop - part.start])
        queries = np.array([q for q, n in enumerate(SIZES) if place < n])

        def moved(by: float, rows: Any = rows) -> Any:
            shifted = scores.copy()
            shifted[rows] += by
            return evaluate(shifted)

        slope = 8 * (moved(step) - moved(-step)) - (moved(2 * step) - moved(-2 * step))
        out[rows] = (slope[queries] if len(slope) == len(SIZES) else slope[rows]) / (12 * step)
    return out
