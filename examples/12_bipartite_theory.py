"""What bipartite losses aim at: the figures of Menon and Williamson, and four equal risks.

A population of ten instances, each with a mass and a probability eta of being relevant. The
minimiser of a proper loss is a fixed function of eta, its link. The minimiser of a bipartite
risk is so only when the link is a sigmoid (logistic, exponential, p-classification: Figure 1);
for the squared and the canonical boosting loss it increases with eta, but where it lies
depends on the population (Figure 2).

Run it with ``python examples/12_bipartite_theory.py [folder]``; a few seconds. It prints the
numbers, and writes the figures where matplotlib is installed.

Menon and Williamson, "Bayes-optimal scorers for bipartite ranking", COLT 2014, Props 8-17.
"""

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gbmrank import theory
from gbmrank.registry import LOSSES
from gbmrank.registry.composition import build

Scores = npt.NDArray[np.float64]
DECOMPOSABLE = ("logistic", "exponential", "p_classification(p=2)", "asymmetric_a")
DISTRIBUTION_DEPENDENT = ("squared_margin", "canonical_boosting")


def centred(scores: Scores) -> Scores:
    """Scores are known up to a constant."""
    return scores - scores.mean()


def link_and_scorer(population: theory.FiniteBipartite, loss: str) -> tuple[Scores, Scores]:
    """The link of eta, which a proper loss leads to, and the bipartite scorer."""
    link = build(LOSSES, loss).link(population.eta)
    return centred(link), centred(population.bipartite_scorer(loss).scores)


def print_differences(population: theory.FiniteBipartite) -> None:
    """How far the bipartite scorer is from the link."""
    print(f"{'loss':24s} {'link sigmoid(a v)':>18s} {'largest difference':>19s}  increasing")
    by_eta = np.argsort(population.eta)
    for loss in (*DECOMPOSABLE, *DISTRIBUTION_DEPENDENT):
        rate = theory.decomposable_rate(build(LOSSES, loss))
        link, scores = link_and_scorer(population, loss)
        rising = bool(np.all(np.diff(scores[by_eta]) > 0))
        shown = "no" if rate is None else f"a = {rate:g}"
        print(f"{loss:24s} {shown:>18s} {np.abs(link - scores).max():19.2e}  {rising}")


def print_four_risks(population: theory.FiniteBipartite) -> None:
    """Proposition 17: one minimiser of a pointwise, two bipartite and a push risk."""
    found = theory.four_risks(population, p=4.0)
    print("\nscores by p-classification (p=4), its bipartite risk, the exponential push (p=4),")
    print("and logit(eta) / 5:")
    columns = (found.proper, found.bipartite, found.push, found.log_odds)
    for row in np.array(columns).T[np.argsort(population.eta)]:
        print("  " + "  ".join(f"{value:9.5f}" for value in row))
    print(f"largest difference, pair scores included: {found.largest_difference:.1e}")


def save_figures(populations: list[theory.FiniteBipartite], folder: Path) -> None:
    """Plot scorers against eta, for several populations."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("\nno figures: pip install 'gbmrank[report]'")
        return
    folder.mkdir(parents=True, exist_ok=True)
    grid = np.linspace(0.02, 0.98, 200)
    for name, losses in (("figure_1", DECOMPOSABLE), ("figure_2", DISTRIBUTION_DEPENDENT)):
        figure = Figure(figsize=(3.4 * len(losses), 3.0), layout="constrained")
        for index, loss in enumerate(losses):
            axes = figure.add_subplot(1, len(losses), index + 1)
            link = build(LOSSES, loss).link
            axes.plot(grid, link(grid), color="grey", label="link")
            for number, population in enumerate(populations):
                scores = population.bipartite_scorer(loss).scores
                shift = np.mean(link(population.eta) - scores)
                axes.plot(population.eta, scores + shift, "o", ms=4, label=f"population {number}")
            axes.set_title(loss, fontsize=9)
            axes.set_xlabel("eta")
        figure.axes[0].set_ylabel("best score")
        figure.axes[-1].legend(fontsize=7)
        figure.savefig(folder / f"{name}.svg")
    print(f"\nfigures: {folder}/figure_1.svg, figure_2.svg")


def main() -> None:
    """Print and plot."""
    rng = np.random.default_rng(0)
    populations = [theory.FiniteBipartite.random(10, rng) for _ in range(3)]
    print_differences(populations[0])
    print_four_risks(populations[0])
    save_figures(populations, Path(sys.argv[1] if len(sys.argv) > 1 else "figures"))


if __name__ == "__main__":
    main()
