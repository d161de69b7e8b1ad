"""Table 1 of Duchi, Mackey and Jordan: pairs of movies rated by MovieLens users."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np

from gbmrank import Objective, RankingData, metric, objective
from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Part
from gbmrank.boosters.plan import train
from gbmrank.types import FloatArray, IntArray
from studies.intervals import Estimate, over_runs
from studies.linear import LinearModel, fit_linear, standardise
from studies.movielens import (
    FEATURES,
    SOURCE,
    Pairs,
    Ratings,
    features,
    read_movielens,
    sample_pairs,
    simulate_ratings,
)
from studies.study import Option, Outcome, Settings, Table

TITLE = "Duchi et al. 2010: consistency of ranking losses"
PAPER = 'Duchi, Mackey and Jordan, "On the consistency of ranking algorithms", ICML 2010, Table 1'
NEEDS = SOURCE
OPTIONS: Mapping[str, Option] = {}
FORMULAS = (
    "losses/convex.py",
    "losses/margin.py",
    "metrics/disagreement.py",
    "objectives/levels.py",
    "objectives/value_linear.py",
)

_PRINTED = {
    20_000: {"hinge": (0.478, 0.008), "logistic": (0.479, 0.010), "linear": (0.465, 0.006)},
    40_000: {"hinge": (0.477, 0.008), "logistic": (0.478, 0.010), "linear": (0.464, 0.006)},
    80_000: {"hinge": (0.480, 0.007), "logistic": (0.478, 0.009), "linear": (0.462, 0.005)},
    120_000: {"hinge": (0.477, 0.008), "logistic": (0.477, 0.009), "linear": (0.463, 0.006)},
    160_000: {"hinge": (0.474, 0.007), "logistic": (0.474, 0.007), "linear": (0.461, 0.004)},
}
_OBJECTIVES = {
    "linear": "linear(nu=0.0001, normalize=none)",
    "hinge": "comparison(loss=hinge, normalize=none)",
    "logistic": "comparison(loss=logistic, normalize=none)",
}
_OTHERS = ("hinge", "logistic")
_SUMMED = "linear, per user"  # regularised once per row of a user, not once per sampled pair
_ROTATIONS = 5
_TREES = {"learning_rate": 0.1, "num_leaves": 15, "min_data_in_leaf": 50}


@final
@dataclass(frozen=True, slots=True)
class _Plan:
    """Sizes of the experiment."""

    sizes: tuple[int, ...] = tuple(_PRINTED)
    tree_sizes: tuple[int, ...] = (20_000, 160_000)
    splits: int = 3
    rotations: int = _ROTATIONS
    test_pairs: int = 40_000
    l2_per_pair: tuple[float, ...] = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    rounds: int = 150
    patience: int = 15


_FULL = _Plan()
_SMALL = _Plan(
    sizes=(200, 800),
    tree_sizes=(800,),
    splits=1,
    rotations=2,
    test_pairs=400,
    l2_per_pair=(1e-2, 1e-5),
    rounds=20,
    patience=5,
)


class _Fold(NamedTuple):
    """One run: features and pairs of its three parts; the test part is last."""

    features: tuple[FloatArray, FloatArray, FloatArray]
    train: Pairs
    valid: Pairs
    test: Pairs


_Losses = dict[tuple[str, str, int], list[float]]  # by model, loss and number of pairs


def run(settings: Settings) -> Outcome:
    """Compare linear, hinge and logistic loss on sampled pairs, as the paper does."""
    plan = _SMALL if settings.small else _FULL
    rng = np.random.default_rng([settings.seed, 2010])
    ratings = simulate_ratings(rng) if settings.small else read_movielens(settings.data)
    settings.report(
        f"{len(ratings.rating):,} ratings, {plan.splits * plan.rotations} runs, up to "
        f"{plan.sizes[-1]:,} pairs"
    )
    losses: _Losses = {}
    number = 0
    for split in range(plan.splits):
        part = _five_parts(ratings.user, rng)
        for turn in range(plan.rotations):
            number += 1
            fold = _fold(ratings, (part + turn) % _ROTATIONS, plan, rng)
            _run_linear(fold, plan, losses)
            _run_trees(fold, plan, settings, losses)
            shown = _latest(losses, plan.sizes[-1])
            settings.report(f"split {split + 1}, run {number}: {shown}")
    return _outcome(losses, plan, ratings, settings)


def _five_parts(user: IntArray, rng: np.random.Generator) -> IntArray:
    """Deal the ratings of each user to five parts of about equal size."""
    order = np.lexsort((rng.random(len(user)), user))
    part = np.empty(len(user), np.int64)
    starts = rng.integers(_ROTATIONS, size=int(user.max()) + 1)
    place = np.arange(len(user)) - np.searchsorted(user, user)
    part[order] = (place + starts[user]) % _ROTATIONS
    return part


def _fold(ratings: Ratings, part: IntArray, plan: _Plan, rng: np.random.Generator) -> _Fold:
    """Compute features and draw pairs; parts 0 to 2 train, 3 validates, 4 tests.

    The features of a training part come from the other two, those of the held-out parts from
    all three: no rating is a part of its own features.
    """
    table = np.empty((len(part), len(FEATURES)))
    for number in range(3):
        rows = part == number
        table[rows] = features(ratings, (part < 3) & ~rows, rows)
    table[part >= 3] = features(ratings, part < 3, part >= 3)
    parts = [part < 3, part == 3, part == 4]
    counts = (plan.sizes[-1], plan.test_pairs, plan.test_pairs)
    drawn = [
        sample_pairs(rng, ratings.user[rows], ratings.rating[rows], n)
        for rows, n in zip(parts, counts, strict=True)
    ]
    train_x, valid_x, test_x = standardise(*(table[rows] for rows in parts))
    return _Fold((train_x, valid_x, test_x), *drawn)


def _bound(pairs: Pairs, name: str) -> tuple[Objective, RankingData, IntArray | None]:
    """Return a loss on pairs, its data, and the rows it is about (all by default).

    An observation is a pair. So the linear loss regularises the two scores of every pair; the
    other losses are sums over pairs whichever way they are grouped.
    """
    rows, graphs = pairs.by_pair() if name == "linear" else (None, pairs.by_user())
    text = _OBJECTIVES["linear" if name == _SUMMED else name]
    data = RankingData.from_arrays(None, preferences=graphs)
    return objective(text, preferences=graphs), data, rows


def _run_linear(fold: _Fold, plan: _Plan, losses: _Losses) -> None:
    """Fit linear scorers to the first n pairs; the penalty is chosen on validation pairs."""
    train_x, valid_x, test_x = fold.features
    valid_loss, test_loss = fold.valid.judge(), fold.test.judge()
    for n in plan.sizes:
        for name in (*_OBJECTIVES, _SUMMED):
            made, data, rows = _bound(fold.train.first(n), name)
            table = train_x if rows is None else train_x[rows]
            model: LinearModel | None = None
            tried = []
            for strength in plan.l2_per_pair:
                model = fit_linear(made, data, table, l2=strength * n, start=model)
                loss = test_loss(model.scores(test_x))
                tried.append((valid_loss(model.scores(valid_x)), loss))
            losses.setdefault(("linear", name, n), []).append(min(tried)[1])


def _run_trees(fold: _Fold, plan: _Plan, settings: Settings, losses: _Losses) -> None:
    """Boost trees on the same pairs; the number of rounds is chosen on validation pairs."""
    train_x, valid_x, test_x = fold.features
    graphs = fold.valid.by_user()
    valid = Part(valid_x, RankingData.from_arrays(None, preferences=graphs))
    measure = metric("pairwise_disagreement(normalize=false, ties=duchi)", preferences=graphs)
    test_loss = fold.test.judge()
    for n in plan.tree_sizes:
        for name in _OBJECTIVES:
            made, data, rows = _bound(fold.train.first(n), name)
            how = training_plan(
                objective=made,
                metric=measure,
                rounds=plan.rounds,
                early_stopping=plan.patience,
                params=_TREES,
                seed=settings.seed,
                threads=settings.threads,
            )
            part = Part(train_x if rows is None else train_x[rows], data)
            model = train(how, part, {"valid": valid})
            losses.setdefault(("trees", name, n), []).append(test_loss(model.scores(test_x)))


def _latest(losses: _Losses, n: int) -> str:
    shown = [
        f"{model} {name} {values[-1]:.4f}"
        for (model, name, size), values in losses.items()
        if size == n
    ]
    return ", ".join(shown)


def _outcome(losses: _Losses, plan: _Plan, ratings: Ratings, settings: Settings) -> Outcome:
    values = {key: np.array(runs) for key, runs in losses.items()}
    gaps, n_runs = _gaps(values), plan.splits * plan.rotations
    facts = {
        "data": "simulated ratings" if settings.small else "MovieLens 100k",
        "ratings": len(ratings.rating),
        "runs": f"{n_runs}: {plan.splits} random splits, {plan.rotations} rotations of each",
        "split": "ratings of each user in five parts: three train, one validates, one tests",
        "features": "age, genres, user's mean of these genres, movie's mean, similar and "
        "dissimilar users; from training ratings, never from the row's own",
        "pairs": "a user at random, then two of its movies with different ratings",
        "test pairs": plan.test_pairs,
        "l2 per pair": ", ".join(f"{one:g}" for one in plan.l2_per_pair),
        "objectives": "; ".join(_OBJECTIVES.values()),
        "trees": f"LightGBM, at most {plan.rounds} rounds, {_TREES}",
        "intervals": "over runs, which share their ratings: they tell how runs differ, not how "
        "sure a difference is for other data",
        "seed": settings.seed,
    }
    return Outcome(
        tables=[_levels(values), _differences(gaps)],
        summary="" if settings.small else _summary(gaps),
        findings=_findings(gaps, small=settings.small),
        figures={"losses": partial(_draw, values, plan)},
        facts=facts,
    )


_Values = Mapping[tuple[str, str, int], FloatArray]


def _levels(values: _Values) -> Table:
    rows = []
    for (model, name, n), runs in values.items():
        printed = _PRINTED.get(n, {}).get(name) if model == "linear" else None
        error = runs.std(ddof=1) / np.sqrt(len(runs))
        theirs = "" if printed is None else f"{printed[0]:.3f} ({printed[1]:.3f})"
        rows.append([model, f"{n:,}", name, f"{runs.mean():.4f} ({error:.4f})", theirs])
    title = "Mean of loss (7) over test pairs, with its standard error over runs"
    return Table(title, ["scorer", "pairs", "loss", "ours", "printed"], rows)


_Gaps = Mapping[tuple[str, str, str], Mapping[int, Estimate]]  # by scorer and the two losses


def _gaps(values: _Values) -> _Gaps:
    """Return the linear loss minus each other one, run by run, for every number of pairs."""
    found: dict[tuple[str, str, str], dict[int, Estimate]] = {}
    for other in _OTHERS:
        for (model, name, n), runs in values.items():
            if name not in _OTHERS:
                gap = over_runs(runs - values[model, other, n])
                found.setdefault((model, name, other), {})[n] = gap
    return found


def _differences(gaps: _Gaps) -> Table:
    rows = []
    for (model, name, other), by_size in gaps.items():
        for n, found in by_size.items():
            gap = _printed_gap(model, name, other, n)
            rows.append([model, f"{n:,}", f"{name} - {other}", str(found), gap])
    title = "Paired differences, with 95% intervals over runs (below 0: the linear loss is better)"
    return Table(title, ["scorer", "pairs", "difference", "ours", "printed"], rows)


def _summary(gaps: _Gaps) -> str:
    """Return the result in plain words."""
    signs: dict[str, list[int]] = {}
    for (_, name, _), by_size in gaps.items():
        signs.setdefault(name, []).append(list(by_size.values())[-1].sign)
    said = [
        f"'{name}' was clearly better in {found.count(-1)} of {len(found)} comparisons and clearly "
        f"worse in {found.count(1)}"
        for name, found in signs.items()
    ]
    return (
        "The linear loss against hinge and logistic, on the largest training set: "
        f"{'; '.join(said)}."
    )


def _findings(gaps: _Gaps, *, small: bool) -> list[str]:
    sentences = ["This is a short run on made-up ratings: it says nothing about the paper."] * small
    sentences += [_claim(*key, by_size) for key, by_size in gaps.items()]
    sentences.append(
        f"'{_SUMMED}' sums the regulariser of the linear loss once over the rows of each user; "
        "'linear' sums it over the two rows of every sampled pair, since a pair is an observation. "
        "We tried 'per user' first."
    )
    if not small:
        sentences[-1] += (
            " The paper prints a double sum, over queries and their items, which reads as 'per "
            "user'; the other reading gives the printed direction."
        )
    return sentences


_SAID = {
    -1: ("has a lower loss than {}", ", as printed"),
    0: ("does not differ clearly from {}", " (printed: lower)"),
    1: ("has a higher loss than {}", ", against the printed direction"),
}


def _claim(model: str, name: str, other: str, by_size: Mapping[int, Estimate]) -> str:
    counts = {sign: sum(one.sign == sign for one in by_size.values()) for sign in (-1, 1)}
    scorer = "Linear scorers" if model == "linear" else "Boosted trees"
    largest, last = list(by_size.items())[-1]
    said, beside = _SAID[last.sign]
    said = said.format(other) + beside * (largest in _PRINTED)
    gap = _printed_gap(model, name, other, largest)
    return (
        f"{scorer}, {largest:,} pairs: {name} {said}; the difference is {last}"
        f"{f', printed {gap}' if gap else ''}. Of {len(by_size)} sizes of the training set, "
        f"{counts[-1]} show it lower and {counts[1]} higher with an interval that leaves out 0."
    )


def _printed_gap(model: str, name: str, other: str, n: int) -> str:
    """Return the difference in the paper, which has linear scorers and one linear loss."""
    if n not in _PRINTED or (model, name) != ("linear", "linear"):
        return ""
    return f"{_PRINTED[n][name][0] - _PRINTED[n][other][0]:+.3f}"


def _draw(values: _Values, plan: _Plan, figure: Any) -> None:
    """Draw the losses of linear scorers against the number of pairs."""
    axes = figure.subplots()
    for name, colour in zip(_OBJECTIVES, ("C0", "C1", "C2"), strict=True):
        runs = [values["linear", name, n] for n in plan.sizes]
        means = [one.mean() for one in runs]
        errors = [one.std(ddof=1) / np.sqrt(len(one)) for one in runs]
        axes.errorbar(plan.sizes, means, errors, color=colour, marker="o", label=name)
        printed = [_PRINTED[n][name][0] for n in plan.sizes if n in _PRINTED]
        if printed:
            axes.plot(plan.sizes, printed, ":", color=colour, label=f"{name}, printed")
    axes.set(xlabel="training pairs", ylabel="mean of loss (7), test pairs")
    axes.legend(fontsize="small")
