"""Best scores of bipartite and push risks against eta: Figures 1 to 4 of Menon and Williamson.

Appendix D of the paper: ten instances, eta from a Beta(4, 3) scaled to [.01, .99], masses from
a Beta(6, 2). The minimiser is found numerically and shifted to the curve it is compared with.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gbmrank import theory
from gbmrank.numerics import logit
from gbmrank.registry.catalogue import LOSSES
from gbmrank.registry.composition import build
from gbmrank.types import FloatArray
from studies.study import Table

_BIPARTITE = (
    "logistic",
    "exponential",
    "p_classification(p=2)",
    "asymmetric_a",
    "asymmetric_b",
    "squared_margin",
    "canonical_boosting",
)
_POWERS = (1.0, 2.0, 4.0, 8.0)
_PUSHED = ("logistic", "asymmetric_a", "asymmetric_b")
_OTHER_POWER = 4.0
_SAME = 1e-6


class Scored(NamedTuple):
    """A population, the best scores, and the curve of eta that they are compared with."""

    eta: FloatArray
    scores: FloatArray
    curve: FloatArray

    @property
    def distance(self) -> float:
        """Largest difference between scores and curve, up to a common shift."""
        gap = self.scores - self.curve
        return float(np.abs(gap - gap.mean()).max())

    @property
    def increasing(self) -> bool:
        """Whether scores order instances by eta."""
        return bool(np.all(np.diff(self.scores[np.argsort(self.eta)]) > 0))


Found = Mapping[tuple[str, str], Sequence[Scored]]
"""By risk and loss: one entry per population."""


def minimise_all(populations: int, rng: np.random.Generator) -> Found:
    """Minimise every risk on several populations.

    Parameters
    ----------
    populations : int
        How many are drawn.
    rng : numpy.random.Generator
        Draws them.
    """
    drawn = [theory.FiniteBipartite.random(10, rng) for _ in range(populations)]
    found: dict[tuple[str, str], list[Scored]] = {}
    for loss in _BIPARTITE:
        link = build(LOSSES, loss).link
        found["bipartite", loss] = [
            Scored(each.eta, each.bipartite_scorer(loss).scores, link(each.eta)) for each in drawn
        ]
    for p in _POWERS:
        found["exponential push", f"p = {p:g}"] = [
            Scored(each.eta, each.push_scorer("exponential", p).scores, logit(each.eta) / (p + 1.0))
            for each in drawn
        ]
    for loss in _PUSHED:
        found[f"push, p = {_OTHER_POWER:g}", loss] = [
            Scored(each.eta, each.push_scorer(loss, _OTHER_POWER).scores, logit(each.eta))
            for each in drawn
        ]
    return found


def table(found: Found) -> Table:
    """Return how far the best scores are from the curve."""
    rows = []
    for (risk, loss), scored in found.items():
        distance = max(each.distance for each in scored)
        rising = all(each.increasing for each in scored)
        rows.append([risk, loss, _curve(risk, loss), f"{distance:.1e}", "yes" if rising else "no"])
    columns = ["risk", "loss", "curve", "largest distance", "increasing in eta"]
    return Table("Figures 1 to 4: best scores against eta", columns, rows)


def findings(found: Found) -> list[str]:
    """Say whether best scores follow the curves that the paper proves."""
    near = [loss for (risk, loss), s in found.items() if risk == "bipartite" and _follows(s)]
    far = [loss for (risk, loss), s in found.items() if risk == "bipartite" and not _follows(s)]
    pushed = max(e.distance for (risk, _), s in found.items() if risk.startswith("exp") for e in s)
    rising = all(each.increasing for scored in found.values() for each in scored)
    half = max(
        Scored(each.eta, each.scores, logit(each.eta) / 2.0).distance
        for each in found["bipartite", "p_classification(p=2)"]
    )
    third = max(each.distance for each in found["bipartite", "p_classification(p=2)"])
    return [
        (
            f"Figures 1 and 2: bipartite minimisers are the link of eta for {', '.join(near)}; "
            f"they are not for {', '.join(far)}, where they depend on the population."
        ),
        (
            f"Appendix D, p-classification with p = 2: the minimiser is logit(eta) / 3 within "
            f"{third:.1e}; the printed factor 1/2 is off by up to {half:.2f}."
        ),
        f"Exponential push: the minimiser is logit(eta) / (p + 1) within {pushed:.1e}.",
        "Every minimiser found increases with eta."
        if rising
        else "Some minimiser does not increase with eta.",
    ]


def figures(found: Found) -> dict[str, Any]:
    """Return the functions that draw Figures 1 to 4."""
    risks = list(dict.fromkeys(risk for risk, _ in found))
    sigmoid = [key for key in found if key[0] == "bipartite" and _follows(found[key])]
    other = [key for key in found if key[0] == "bipartite" and not _follows(found[key])]
    groups = {
        "bayes_scorers_of_links_that_are_sigmoids": sigmoid,
        "bayes_scorers_of_other_links": other,
        "bayes_scorers_of_the_exponential_push": [key for key in found if key[0] == risks[1]],
        "bayes_scorers_of_other_pushes": [key for key in found if key[0] == risks[2]],
    }
    return {
        name: partial(_draw, {key: found[key] for key in keys}) for name, keys in groups.items()
    }


def _follows(scored: Sequence[Scored]) -> bool:
    return all(each.distance < _SAME for each in scored)


def _curve(risk: str, loss: str) -> str:
    if risk == "exponential push":
        return f"logit(eta) / {float(loss.removeprefix('p = ')) + 1:g}"
    return "link of eta" if risk == "bipartite" else "logit(eta)"


def _draw(found: Found, figure: Any) -> None:
    across = 2 if len(found) == 4 else min(len(found), 3)
    down = -(-len(found) // across)
    figure.set_size_inches(3.2 * across, 2.8 * down + 0.4)
    figure.set_layout_engine("constrained")
    panels = figure.subplots(down, across, squeeze=False)
    for axes in panels.flat[len(found) :]:
        axes.set_visible(False)
    for axes, ((risk, loss), scored) in zip(panels.flat, found.items(), strict=False):
        eta = np.concatenate([each.eta for each in scored])
        curve = np.concatenate([each.curve for each in scored])
        order = np.argsort(eta)
        axes.plot(eta[order], curve[order], color="grey", lw=1, label=_curve(risk, loss))
        for number, each in enumerate(scored):
            shift = np.mean(each.curve - each.scores)
            axes.plot(
                each.eta, each.scores + shift, "o^s"[number % 3], ms=4, label=f"population {number}"
            )
        axes.set_title(f"{risk}, {loss}", fontsize=9)
        axes.set_xlabel("eta")
        axes.legend(fontsize=6.5, frameon=False)
    for axes in panels[:, 0]:
        axes.set_ylabel("best score")
