"""Every loss, objective template and metric of gbmrank passes the kit that plugins run."""

import pytest

from gbmrank.registry import LOSSES, METRICS, OBJECTIVES
from gbmrank.testing import run_checks
from tests.formulas import PLAIN

COMPILED = ("logistic", "pairwise", "swap", "ndcg@2")  # by ``make test``, too
SLOW = (  # many draws, or the same kernel as swap
    "yetirank",
    "lambdarank@3",
    "ndcg_loss2",
    "ndcg_loss2pp(mu=2)@3",
    "lambdarank(loss=brier_sigmoid, norm=true)",
    "yetirank(like=lambdarank)",
    "lambdarank(like=rank:ndcg)",
    "swap(metric=err@3, noise=gumbel)",
    "swap(metric=map(threshold=2))",
)


def own(registry):
    return [
        name
        for name, entries in registry.entries.items()
        if entries[0].origin.distribution == "gbmrank" and registry.preset(name) is None
    ]


def passes(subject, kind, **expected):
    report = run_checks(subject, kind=kind, expected_failures=expected)
    assert not report.failed, str(report)


def cases(names):
    """Return parameters: in plain Python all of them, and a few compiled."""
    marks = {name: pytest.mark.compiled for name in COMPILED if not PLAIN}
    marks |= dict.fromkeys(SLOW, pytest.mark.nightly)
    return [pytest.param(name, marks=marks.get(name, ())) for name in names]


@pytest.mark.parametrize("name", cases(own(LOSSES)))
def test_losses(name):
    passes(name, "loss")


ROWS_DECIDE = "equal labels have no order of their own; listmle draws one by row"
EXPECTED_OF_OBJECTIVES: dict[str, dict[str, str]] = {
    "listmle": {"permutation": ROWS_DECIDE, "ties": ROWS_DECIDE},
}
OBJECTIVES_CHECKED = (
    *[name for name in own(OBJECTIVES) if name != "mix"],
    "mix(ranknet, softmax)",
    "cossock_zhang",
    "pnorm_push",
    "p_classification",
    "map_diagonal",
    "w_ranknet",
    "ranksvm",
    "comparison(hessian=majorise)",
    "comparison(hessian=constant)",
    "pairwise(loss=squared, target=dcg)",
    "linear(regulariser=cosh)",
    "bregman(loss=poisson)",
    "lambdarank@3",
    "ndcg_loss2",
    "ndcg_loss2pp(mu=2)@3",
    "yetirank",
    "lambdarank(loss=brier_sigmoid, norm=true)",
    "yetirank(like=lambdarank)",
    "lambdarank(like=rank:ndcg)",
    "swap(metric=err@3, noise=gumbel)",
    "swap(metric=map(threshold=2))",
    "query_rmse(hessian=exact, target=dcg)",
)


@pytest.mark.parametrize("text", cases(OBJECTIVES_CHECKED))
def test_objectives(text):
    passes(text, "objective", **EXPECTED_OF_OBJECTIVES.get(text, {}))


@pytest.mark.parametrize(
    "text",
    cases(
        [
            *(name for name in own(METRICS) if name != "alpha_ndcg"),
            "hit_rate@2",
            "ndcg@2",
            "precision@2",
            "recall@2",
            "map@2",
            "err@3",
            "ndcg(ties=worst)",
        ]
    ),
)
def test_metrics(text):
    passes(text, "metric")
