"""``gbmrank advise METRIC``: which objective is right for a metric, and why."""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gbmrank.api.metrics import Metric
from gbmrank.cli.arguments import option
from gbmrank.cli.screen import bold, clean, filled, fitted, line_width, show
from gbmrank.errors import ParameterError

if TYPE_CHECKING:
    from gbmrank.metrics import AbstractMetric
    from gbmrank.theory.verdicts.advice import Advice

_SHOWN = 5  # objectives of each verdict that are shown without --all
_MEANING = {
    "calibrated": "with enough data, minimising it gives the best order for the metric",
    "conditional": "gives the best order where a condition holds",
    "unknown": "neither proven nor refuted",
    "not calibrated": "a counterexample is stored",
}


_NEXT = (
    "If it loses on your data, try in this order: the target of another metric (dcg for ndcg), "
    'query_rmse, swap of the metric, then GBMRanker("committee", metric="{}"), and the same with '
    "folds=4. A committee is the mean of models of four objectives. It often ranks better than "
    "each of them, by experiment and not by theorem."
)
_TRIED = ("ndcg", "dcg")  # metrics of those scripts, and what is close to them
_NOISY = (  # for what recommended() puts before a proven objective
    "Take yetirank: with noisy labels it was ahead of lambdarank and rank:ndcg in every trial. It "
    "optimises heuristically, like them."
)
_DROP_IN = (
    "In a script tuned for lambdarank or rank:ndcg, change nothing but the objective, to "
    "yetirank(like=lambdarank) or yetirank(like=rank:ndcg). In six public scripts on synthetic "
    "data they are ahead on average and nowhere clearly behind, with clean and with noisy labels."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("metric", nargs="?", help="such as ndcg@10 or err@10")
    parser.add_argument(
        "--instead-of",
        choices=("lambdarank", "rank:ndcg"),
        help="name the drop-in for an objective of LightGBM or XGBoost in a script as it is",
    )
    parser.add_argument(
        "--given",
        choices=("independent", "low-noise"),
        help="what is known about your data: labels that are independent given the features, "
        "or preference graphs with low noise; objectives proven for such data come first",
    )
    option(parser, "--all", "show every verdict with its reason")


def run(given: argparse.Namespace) -> int:
    """Print objectives, the best first."""
    if given.instead_of is not None:
        return _print_drop_in(given)
    if given.metric is None:
        raise ParameterError("name a metric, such as ndcg@10, or use --instead-of")
    from gbmrank.estimators.committee import default_members
    from gbmrank.registry.composition import as_metric, text_of
    from gbmrank.theory.verdicts.advice import advise, recommended

    measure = as_metric(given.metric)
    rows = advise(measure, given=given.given)
    first = rows[0] if given.given else recommended(measure, rows)
    name = text_of(measure)
    if given.json:
        advice = [row.as_dict() for row in rows]
        known = {"schema": "gbmrank.advise/1", "metric": name, "given": given.given}
        team = [str(one) for one in default_members(Metric(measure))]
        known["recommended"] = first.objective
        print(json.dumps({**known, "advice": advice, "committee": team}, indent=2))
        return 0
    when = {"independent": ", LABELS INDEPENDENT", "low-noise": ", GRAPHS WITH LOW NOISE"}
    print(bold(f"OBJECTIVES FOR {name.upper()}{when.get(given.given, '')}"))
    if given.all:
        # One paragraph for each different reason, with the number of its objectives.
        counts = Counter((row.verdict.status, row.verdict.sentence) for row in rows)
        reasons = [filled(f"{one} ({count}): {why}.") for (one, why), count in counts.items()]
        print(_table(rows), *reasons, _closing(name, measure, rows, first), sep="\n\n")
        return 0
    print(_advice(name, measure, rows, first))
    for status, purpose in _MEANING.items():
        group = [row for row in rows if row.verdict.status == status]
        if group:
            head, told = f"{status} ({len(group)})", filled(f"{status} ({len(group)}): {purpose}")
            print("\n" + told.replace(head, bold(head), 1))
            print("\n".join(clean(f"  {row.objective}") for row in group[:_SHOWN]))
            if group[_SHOWN:]:
                print(f"  and {len(group) - _SHOWN} more")
    more = [_NEXT.format(name), *([_DROP_IN] if name.startswith(_TRIED) else [])]
    print("", *map(filled, more), sep="\n")
    print(f"\ngbmrank advise {given.metric} --all shows every verdict with its reason.")
    return 0


def _print_drop_in(given: argparse.Namespace) -> int:
    """Print what replaces an objective of a booster, all else left as it is."""
    if given.metric is not None or given.given is not None or given.all:
        raise ParameterError("--instead-of takes no metric and no other option but --json")
    native = given.instead_of
    found = f"yetirank(like={native})"
    known = {"schema": "gbmrank.advise/1", "instead_of": native, "objective": found}
    text = filled(
        f"Take {found}. Its steps and curvature have the size of those of {native}, so tuned "
        "parameters keep their meaning. No theorem covers either; gbmrank advise METRIC names "
        "what is proven, to be tuned anew."
    )
    return show(given, known, f"{text}\n{filled(_DROP_IN)}")


def _table(rows: Sequence["Advice"]) -> str:
    cells = []
    for row in rows:
        found = row.verdict
        why = found.reference if found.condition is None else f"if {found.condition}"
        cells.append([row.objective, found.status, found.constant or "-", row.cost, why])
    return fitted(["objective", "verdict", "c", "cost", "why"], cells, width=line_width())


def _advice(name: str, measure: "AbstractMetric", rows: Sequence["Advice"], first: "Advice") -> str:
    """Return what to do, in a sentence or two."""
    best = rows[0]
    if best.proven:
        sure = f"{best.objective}: {best.verdict.sentence}."
        if best.objective == first.objective:
            return filled(f"Take {sure}")
        return f"{filled(_NOISY)}\n{filled(f'For a guarantee, take {sure}')}"

    aimed = next((row.objective for row in rows if row.objective.startswith("swap(")), None)
    lines = []
    if aimed is not None:
        lines.append(
            f"Try {aimed}: it aims at the metric itself, pair by pair. No theorem covers it, so "
            "compare it on your data (gbmrank compare)."
        )
    lines.append(f"No objective is known to be calibrated for {name}.")
    if measure.utility is None:
        cut = "".join(name.partition("@")[1:])
        lines.append(f"What to do: {measure.no_utility.format(k=cut)}.")
    return "\n".join(map(filled, lines))


def _closing(
    name: str, measure: "AbstractMetric", rows: Sequence["Advice"], first: "Advice"
) -> str:
    lines = [_advice(name, measure, rows, first)]
    if rows[0].proven and rows[0].verdict.constant is not None:
        bound = f"{name} lost <= c C_phi(2) sqrt(loss above its infimum)"
        about = f"c is the constant in the bound {bound}, with the sums of the formulas."
        lines.append(filled(about))
    shown = next((row for row in rows if row.verdict.counterexample is not None), None)
    if not rows[0].proven and shown is not None:
        lines += ["", "A distribution that shows it:", clean(shown.verdict.counterexample)]
    return "\n".join(lines)
