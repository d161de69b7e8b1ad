"""``gbmrank info NAME``: everything about one objective, loss or metric, with curves of a loss."""

import argparse
import re
import textwrap
from collections.abc import Sequence
from dataclasses import MISSING, fields, replace
from typing import Any

import numpy as np

from gbmrank import api
from gbmrank.api.committees import Committee
from gbmrank.boosters.plan import PREFIX
from gbmrank.boosters.supported import BOOSTERS
from gbmrank.cli import arguments
from gbmrank.cli.screen import bold, clean, filled, fitted, line_width, show, unmarked
from gbmrank.errors import (
    NEEDS_MATPLOTLIB,
    GbmrankError,
    ParameterError,
    UnknownNameError,
    import_optional,
)
from gbmrank.estimators.committee import default_members
from gbmrank.losses import AbstractLoss
from gbmrank.losses.base import ScalarFunction
from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractObjective
from gbmrank.registry.catalogue import (
    GENERATORS,
    LOSSES,
    METRICS,
    OBJECTIVES,
    OUTERS,
    REGULARISERS,
    Registry,
)
from gbmrank.registry.composition import build
from gbmrank.types import FloatArray

Curve = tuple[str, FloatArray]
_MARKS = "*'."
_COLUMNS, _ROWS = 61, 15
_METRICS = (
    *("dcg@10", "ndcg@10", "precision@10", "recall@10", "wta", "auc", "spearman", "eru"),
    *("err@10", "map", "mrr", "ptop", "pairwise_disagreement"),
)
_KINDS: dict[str, Registry[Any]] = {"objective": OBJECTIVES, "loss": LOSSES, "metric": METRICS}
_PARTS: dict[str, Registry[Any]] = {
    "outer": OUTERS,
    "regulariser": REGULARISERS,
    "generator": GENERATORS,
}
_THEOREM = "theorem:"
_USUAL = "ndcg@10"  # metric
_MARGINS = np.linspace(-3.0, 3.0, 121)
_TRAITS = (
    *("convex", "differentiable", "smooth", "shift_invariant", "hessian_trait", "gradient"),
    *("randomised", "item_weights", "linear_in_utility", "higher_is_better", "linear"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", help="an objective, loss or metric, by name or as text; or "
                        "theorem:WORDS, such as 'theorem:duchi thm 13'")  # fmt: skip
    kind = "which one is meant, if the name is ambiguous"
    parser.add_argument("--kind", choices=_KINDS, help=kind)
    arguments.option(parser, "--plot FILE", "write the curves to a .png, .svg or .pdf")


def run(given: argparse.Namespace) -> int:
    """Print formula, parameters, traits, verdicts and curves."""
    if given.name.startswith(_THEOREM):
        return _theorems(given)
    if re.match(rf"\s*{Committee.name}\s*([(@]|$)", given.name):
        return _committee(given)
    kind, part = _found(given.name, given.kind)
    loss = part if isinstance(part, AbstractLoss) else getattr(part, "loss", None)
    panels = _panels(loss) if isinstance(loss, AbstractLoss) else []
    if given.plot:
        if not panels:
            raise ParameterError(f"{given.name} has no loss of a margin or a score to plot")
        _save(given.plot, given.name, panels)
    facts = _facts(kind, part)
    facts["verdicts"] = _verdicts(part) if isinstance(part, AbstractObjective) else None
    lines = [_page(facts), *(f"\n{bold(name)}\n{_draw(curves)}" for name, curves in panels)]
    if any(given.name in booster.native for booster in BOOSTERS):
        own = f"{PREFIX}{given.name}"
        lines += ["", f"To train the booster's own objective of this name, use {own}."]
    if isinstance(part, AbstractMetric):
        lines += ["", f"gbmrank advise {clean(given.name)} says which objectives suit it."]
    return show(given, {"schema": "gbmrank.info/1", **facts}, "\n".join(lines))


def _theorems(given: argparse.Namespace) -> int:
    """Print the statements of the papers that contain some words."""
    from gbmrank.theory.statements import theorems

    words = given.name.removeprefix(_THEOREM)
    rows = theorems(words)
    if not rows:
        raise UnknownNameError(f"no statement of the papers has the words {words!r}; {_THEOREM} "
                               "alone lists all of them")  # fmt: skip
    known = {"schema": "gbmrank.theorems/1", "rows": [one._asdict() for one in rows]}
    return show(given, known, clean("\n".join(map(str, rows))), indent=None)


def _committee(given: argparse.Namespace) -> int:
    """Print what a committee is and which members it has."""
    made = Committee.from_text(given.name)
    own = made.members or default_members(api.metric(_USUAL))
    facts = {"kind": made.name, "text": str(made), "members": [str(one) for one in own]}
    whose = "" if made.members else f", by default those that suit the metric; for {_USUAL}"
    cost = len(own) * made.seeds
    lines = [
        bold(str(made)),
        filled(f"  the mean of models of several objectives, merged into one model file{whose}:"),
        *(f"    {one}" for one in own),
        f"  cost  {cost} trainings, and {cost} times the trees at prediction",
        "  No theorem covers a mean of models; gbmrank compare says what it gains on your data.",
        f'\nGBMRanker("{made}", metric="{_USUAL}") trains it.',
    ]
    return show(given, {"schema": "gbmrank.info/1", **facts}, "\n".join(lines))


def _found(name: str, wanted: str | None) -> tuple[str, Any]:
    """Look a name up among objectives, losses and metrics, in this order."""
    arguments.check_not_native(name)
    registries = {kind: each for kind, each in _KINDS.items() if wanted in (None, kind)}
    for kind, registry in registries.items():
        if arguments.is_registered(registry, name):
            return kind, build(registry, name)
    near = [one for registry in reversed(registries.values()) for one in registry.near(name)]
    there = sorted({known for registry in registries.values() for known in registry})
    hint = f"did you mean {' or '.join(map(repr, near[:3]))}?" if near else "there are "
    listed = "" if near else ", ".join(there)
    raise UnknownNameError(
        f"there is no {wanted or 'objective, loss or metric'} {name!r}; {hint}{listed}"
    )


def _facts(kind: str, part: Any) -> dict[str, Any]:
    from gbmrank.registry.composition import text_of

    traits = {name: _plain(getattr(part, name)) for name in _TRAITS if hasattr(part, name)}
    loss = getattr(part, "loss", None)
    # The allowed values of parameters that ``gbmrank list`` does not show.
    kinds = {field.name: str(field.metadata.get("kind")) for field in fields(part)}
    choices = {name: ", ".join(_PARTS[kind]) for name, kind in kinds.items() if kind in _PARTS}
    if "g" in choices:
        choices["g"] += ", or an object of your subclass of gbmrank.extend.AbstractOuter"
    return {
        "kind": kind,
        "text": text_of(part),
        "about": unmarked((type(part).__doc__ or "").strip().split("\n")[0]),
        "formula": unmarked(part.formula),
        "loss": None if loss is None else f"{loss.name}: {loss.formula}",
        "reference": getattr(part, "reference", ""),
        "cost": getattr(part, "cost", None),
        "traits": {**traits, **_measured(part)},
        "parameters": {field.name: _parameter(part, field) for field in fields(part)},
        "choices": choices,
    }


def _measured(part: Any) -> dict[str, Any]:
    """Return measured traits: an engine's error, or the link, weight and slope of a loss."""
    from gbmrank.theory.shapes import item_shape, pair_shape

    if isinstance(part, AbstractObjective) and part.accuracy is not None:
        return {"linear-time error": f"{part.accuracy:.1e} of the sum of absolute terms"}
    if not isinstance(part, AbstractLoss) or part.pair_form == "difference":
        return {}
    shape = item_shape(part)
    link = "none" if shape.rate is None else f"sigmoid({shape.rate:g} v)"
    found: dict[str, Any] = {"strictly proper": shape.proper and part.differentiable, "link": link}
    if np.isfinite(shape.least_weight):
        found["least weight w(c)"] = float(f"{shape.least_weight:.6g}")
    if part.pair_form == "margin":
        pairs = pair_shape(part)
        found["slope of a pair at 0"] = float(f"{pairs.slope:.6g}")
        found["decreasing over pairs"] = pairs.decreasing
    return found


def _parameter(part: Any, field: Any) -> str:
    value = getattr(part, field.name)
    default = field.default if field.default is not MISSING else field.metadata.get("usual")
    shown = _plain(value)
    return str(shown) if default in (value, shown) else f"{shown} (default {_plain(default)})"


def _plain(value: Any) -> Any:
    from gbmrank.registry.composition import spec_of

    if value is None or isinstance(value, bool | int | float | str):
        return value
    try:
        return str(spec_of(value))
    except (AttributeError, TypeError):
        return str(value)


def _verdicts(part: AbstractObjective) -> list[dict[str, Any]]:
    from gbmrank.theory.verdicts.calibration import calibration

    rows: list[dict[str, Any]] = []
    for metric in _METRICS:
        try:
            verdict = calibration(part, metric)
        except GbmrankError as error:
            rows.append({"metric": metric, "status": "unknown", "sentence": str(error)})
            continue
        row = {"metric": metric, **verdict.as_dict(), "counterexample": None}
        if verdict.status != "calibrated":
            row["calibrated_with_target"] = _better_target(part, metric)
        rows.append(row)
    return rows


def _better_target(part: AbstractObjective, metric: str) -> str | None:
    """Return the target with which an objective is calibrated for a metric, if there is one."""
    from gbmrank.registry.composition import as_metric, text_of
    from gbmrank.theory.verdicts.advice import target_for
    from gbmrank.theory.verdicts.calibration import calibration

    if "target" not in {field.name for field in fields(part)}:
        return None
    target = target_for(as_metric(metric))
    try:
        verdict = calibration(replace(part, target=target), metric)  # type: ignore[call-arg]
    except GbmrankError:
        return None
    return text_of(target) if verdict.status == "calibrated" else None


def _panels(loss: AbstractLoss) -> list[tuple[str, list[Curve]]]:
    if loss.pair_form == "difference":
        return []
    panels = []
    if loss.pair_form == "margin":
        curves = zip(("value", "slope", "curvature"), _sampled(loss, loss.kappa), strict=True)
        panels.append(("loss of a pair, by margin", list(curves)))
    if loss.kappa is not loss.partials[0] or not panels:
        values = [_sampled(loss, each)[0] for each in loss.partials]
        partials = list(zip(("useful item", "useless item"), values, strict=True))
        panels.append(("losses of single items, by score", partials))
    return panels


def _page(facts: dict[str, Any]) -> str:
    lines = [bold(clean(f"{facts['kind'].upper()} {facts['text']}")), clean(facts["about"]), ""]
    rows = ("formula", "loss", "cost", "reference")
    lines += [f"{name:<9}  {clean(facts[name])}" for name in rows if facts[name]]
    lines += ["", bold("PARAMETERS")] if facts["parameters"] else []
    lines += [f"  {key:<12} {clean(value)}" for key, value in facts["parameters"].items()]
    lines += [f"  {key} may be {values}" for key, values in facts["choices"].items()]
    lines += ["", bold("TRAITS")]
    lines += [f"  {key:<22} {value}" for key, value in facts["traits"].items()]
    if facts["verdicts"]:
        cells = []
        for row in facts["verdicts"]:
            condition = row.get("condition")
            why = f"if {condition}" if condition else row.get("reference", row["sentence"])
            cells.append([row["metric"], row["status"], row.get("constant") or "-", why])
        shown = fitted(["metric", "verdict", "c", "why"], cells, width=line_width())
        lines += ["", bold("VERDICTS"), shown]
        better = [row for row in facts["verdicts"] if row.get("calibrated_with_target")]
        if better:
            names = ", ".join(row["metric"] for row in better)
            target = better[0]["calibrated_with_target"]
            text = f"With the metric as target, such as target={target}: calibrated for {names}."
            lines += ["", textwrap.fill(text, line_width() or len(text))]
    return "\n".join(lines)


def _sampled(loss: AbstractLoss, function: ScalarFunction) -> FloatArray:
    """Return value, slope and curvature at the margins, one row each."""
    return np.array([function(float(z), *loss.params) for z in _MARGINS]).T


def _draw(curves: Sequence[Curve]) -> str:
    """Return a plot made of characters; the scale ends at the 2nd and 98th percentile.

    >>> print(_draw([("value", _MARGINS)]).splitlines()[0].strip())
    2.88 |                                                         ****
    """
    everything = np.concatenate([values for _, values in curves])
    low, high = np.percentile(everything, [2, 98])
    low, high = (low, high) if high > low else (low - 1.0, high + 1.0)
    canvas = [[" "] * _COLUMNS for _ in range(_ROWS)]
    columns = np.round(np.linspace(0, _COLUMNS - 1, len(_MARGINS))).astype(int)
    for mark, (_, values) in reversed(list(zip(_MARKS, curves, strict=False))):
        heights = (np.clip(values, low, high) - low) / (high - low) * (_ROWS - 1)
        for column, height in zip(columns, np.round(heights).astype(int), strict=True):
            canvas[_ROWS - 1 - height][column] = mark
    sides = [f"{high:.3g}", *[""] * (_ROWS - 2), f"{low:.3g}"]
    width = max(map(len, sides))
    drawn = zip(sides, map("".join, canvas), strict=True)
    lines = [f"{side:>{width}} |{row}".rstrip() for side, row in drawn]
    left, right = f"{_MARGINS[0]:g}", f"{_MARGINS[-1]:g}"
    axis = f"{'':>{width}} +{'-' * _COLUMNS}"
    scale = f"{'':>{width}}  {left}{right:>{_COLUMNS - len(left)}}"
    legend = "  ".join(f"{m} {name}" for m, (name, _) in zip(_MARKS, curves, strict=False))
    return "\n".join([*lines, axis, scale, f"{'':>{width}}  {legend}"])


def _save(path: str, title: str, panels: Sequence[tuple[str, list[Curve]]]) -> None:
    """Write a plot; the suffix (.png, .svg, .pdf) decides the format."""
    if not path.lower().endswith((".png", ".svg", ".pdf")):
        raise ParameterError(f"--plot takes a file that ends in .png, .svg or .pdf, got {path!r}")
    # A figure without pyplot has no window, whatever the backend of matplotlib.
    figure = import_optional("matplotlib.figure", NEEDS_MATPLOTLIB).Figure(
        figsize=(4.5 * len(panels), 3.2), layout="constrained"
    )
    for index, (name, curves) in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), index + 1)
        for label, values in curves:
            axes.plot(_MARGINS, values, label=label)
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("score or margin")
        axes.legend(fontsize=8)
    figure.suptitle(title, fontsize=10)
    figure.savefig(path)
