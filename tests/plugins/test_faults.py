"""Fault probe: whatever a plugin does, the rest works and the message names the distribution."""

import logging
import sys
import threading
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost

import gbmrank
from gbmrank.cli import main
from gbmrank.errors import PluginContractError, PluginError, RegistrationError
from gbmrank.losses import Logistic
from gbmrank.registry import LOSSES, METRICS, OBJECTIVES, UTILITIES
from gbmrank.testing import run_checks
from tests.plugins.fakes import shelf  # noqa: F401  (a fixture)

DIST = "odd-plugin"

OBJECTIVE = """
import sys
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from gbmrank.extend import AbstractBound, AbstractObjective

class Bound(AbstractBound):
    def __init__(self, data):
        super().__init__(data.groups)
        self.labels, self.calls = data.labels, 0
    def fill(self, scores, out, *, single):
        self.calls += 1
        {fill}
        out.grad[:] = scores - self.labels
        out.hess[:] = 1.0
        {after}
    def losses(self, scores):
        values = np.add.reduceat(0.5 * (scores - self.labels) ** 2, self.groups.offsets[:-1])
        return {losses}

@dataclass(frozen=True, slots=True, kw_only=True)
class Odd(AbstractObjective):
    name: ClassVar[str] = "odd"
    hessian_trait: ClassVar[str] = "exact"
    def __post_init__(self):
        {init}
    def bind(self, {data}):
        {bind}
        return {bound}
"""
PARTS = {
    "fill": "pass",
    "after": "pass",
    "losses": "values",
    "init": "pass",
    "data": "data",
    "bind": "pass",
    "bound": "Bound(data)",
}
METRIC = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from gbmrank.extend import AbstractBoundMetric, AbstractMetric

class Bound(AbstractBoundMetric):
    def per_query(self, ranked):
        {body}

@dataclass(frozen=True, slots=True, kw_only=True)
class Odd(AbstractMetric):
    name: ClassVar[str] = "odd"
    def bind(self, data):
        return Bound(self, data)
"""
GOOD = "def fine(z, c=1.0):\n    return c * (1.0 - z) ** 2, -2.0 * c * (1.0 - z), 2.0 * c\n"


def objective_source(**changes):
    return OBJECTIVE.format(**{**PARTS, **changes})


def hold_the_rest(capsys, broken=True):
    """Built-ins and a good plugin work; listing shows all; the doctor names the culprit."""
    grad, _ = gbmrank.objective("ranknet").gradients([1, 0], [0.0, 0.0])
    assert grad.tolist() == [-0.5, 0.5]
    assert gbmrank.objective("comparison", loss="fine").loss([1, 0], [0.0, 0.0]) == 1.0
    assert main(["list", "--json"]) == 0
    listed = capsys.readouterr().out
    assert DIST in listed
    assert '"fine"' in listed
    assert main(["plugins", "doctor"]) == (2 if broken else 0)
    told = capsys.readouterr().out
    assert f"{DIST} 1.5" in told
    return told


@pytest.fixture
def good(shelf):  # noqa: F811
    shelf.add("good-plugin", GOOD, losses={"fine": "fine"})
    return shelf


LOADING = {
    "ImportError": ("import no_such_module_at_all", "No module named 'no_such_module_at_all'"),
    "SyntaxError": ("def odd(z:\n    pass", "SyntaxError"),
    "RuntimeError": ("raise RuntimeError('boom')", "boom"),
    "SystemExit": ("import sys\nsys.exit(3)", r"SystemExit\(3\)"),
    "missing": ("x = 1", "has no attribute 'odd'"),
    "future": ("gbmrank_api = 2\ndef odd(z):\n    return z, z, z", "version 2 of the plugin"),
    "signature": ("def odd(*z):\n    return z, z, z", "must be a function of the margin"),
    "no default": ("def odd(z, alpha):\n    return z, z, z", "parameters with defaults"),
    "two values": ("def odd(z):\n    return z, z", r"must return \(value"),
    "fails": ("def odd(z):\n    return 1 / 0, z, z", "ZeroDivisionError"),
    "nan": ("def odd(z):\n    return z, float('nan'), 0.0", "is not finite at the margin"),
    "object": ("odd = object()", "a loss must be a subclass of"),
}


@pytest.mark.parametrize("case", LOADING)
def test_a_loss_that_does_not_load(good, capsys, case):
    source, message = LOADING[case]
    good.add(DIST, source, losses={"odd": "odd"})
    entry = LOSSES.entries["odd"][0]
    assert entry.status.state == "not loaded"
    for _ in range(2):
        with pytest.raises(PluginError, match=message) as caught:
            gbmrank.objective("comparison", loss="odd")
        assert f"{DIST} 1.5" in str(caught.value)
    status = LOSSES.entries["odd"][0].status
    assert status.state == "broken"
    assert status.cause is not None
    told = hold_the_rest(capsys)
    assert "advice: " in told
    assert main(["list", "losses"]) == 0
    assert "cannot be loaded" in capsys.readouterr().out


CLASSES = {
    "constructor": ({"init": "raise RuntimeError('no constructor')"}, "no constructor"),
    "constructor exits": ({"init": "sys.exit(7)"}, r"SystemExit\(7\)"),
    "bind": ({"bind": "raise KeyError('no bind')"}, "no bind"),
    "bound": ({"bound": "3"}, "must return a subclass of AbstractBound, got 3"),
    "fill": ({"fill": "raise OSError('no gradient')"}, "no gradient"),
    "nan": ({"after": "out.grad[0] = np.nan"}, "returned gradient nan"),
    "unwritten": ({"fill": "return"}, "did not write"),
    "wrong shape": ({"after": "out.grad[:] = np.zeros(len(scores) + 1)"}, "could not broadcast"),
    "losses shape": ({"losses": "values[:, None]"}, r"losses must return one number per query"),
    "losses number": ({"losses": "0.5"}, "losses must return one number per query"),
}


def use_all_of_it(text):
    made = gbmrank.objective(text)
    made.gradients([1.0, 0.0, 2.0], [0.0, 0.1, 0.2], group=[2, 1])
    made.loss([1.0, 0.0, 2.0], [0.0, 0.1, 0.2], group=[2, 1])


@pytest.mark.parametrize("case", CLASSES)
def test_an_objective_that_fails_in_use(good, capsys, case):
    changes, message = CLASSES[case]
    good.add(DIST, objective_source(**changes), objectives={"odd": "Odd"})
    with pytest.raises(PluginError, match=f"(?s){DIST} 1.5.*{message}") as caught:
        use_all_of_it("odd")
    if not isinstance(caught.value, PluginContractError):
        assert caught.value.__cause__ is not None
    hold_the_rest(capsys, broken=False)


def test_a_wrong_signature_is_rejected_when_it_is_loaded(good, capsys):
    good.add(DIST, objective_source(data="data, more"), objectives={"odd": "Odd"})
    with pytest.raises(PluginContractError, match=r"odd-plugin 1.5: Odd.bind.*bind\(self, data\)"):
        gbmrank.objective("odd")
    hold_the_rest(capsys)


def test_a_loss_class_with_another_signature_than_its_parameters(good, capsys):
    source = """
    from dataclasses import dataclass
    from typing import ClassVar
    from gbmrank.extend import AbstractMarginLoss

    def phi(z):
        return z, 1.0, 0.0

    @dataclass(frozen=True, slots=True)
    class Odd(AbstractMarginLoss):
        alpha: float = 1.0
        name: ClassVar[str] = "odd"
        phi = staticmethod(phi)
    """
    good.add(DIST, source, losses={"odd": "Odd"})
    with pytest.raises(PluginContractError, match=r"phi\(z, alpha\)"):
        gbmrank.objective("comparison", loss="odd")
    hold_the_rest(capsys)


def test_an_exception_in_the_middle_of_training_names_the_plugin(good):
    source = objective_source(fill="if self.calls > 2: raise OSError('disk on fire')")
    good.add(DIST, source, objectives={"odd": "Odd"})
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60).astype(float)
    made = gbmrank.objective("odd")
    for train in (_lightgbm, _xgboost):
        with pytest.raises(PluginError, match=r"'odd' of odd-plugin 1.5 failed.*disk on fire"):
            train(made, x, y)
        _ = train(gbmrank.objective("ranknet"), x, y)


def _lightgbm(objective, x, y):
    data = lightgbm.Dataset(x, y, group=[30, 30])
    return lightgbm.train({"objective": objective, "verbose": -1, "min_data_in_leaf": 1}, data, 5)


def _xgboost(objective, x, y):
    data = xgboost.DMatrix(x, y)
    data.set_group([30, 30])
    return xgboost.train({"verbosity": 0, "min_child_weight": 0}, data, 5, obj=objective)


def test_mutated_inputs_stay_with_the_plugin_and_are_caught_by_the_kit(good, capsys):
    good.add(DIST, objective_source(after="scores += 1.0"), objectives={"odd": "Odd"})
    scores = np.array([0.0, 0.1, 0.2])
    made = gbmrank.objective("odd")
    made.gradients([1.0, 0.0, 2.0], scores)
    made(np.array([1.0, 0.0, 2.0]), scores)
    assert scores.tolist() == [0.0, 0.1, 0.2]
    assert "inputs" in run_checks("odd").failed
    hold_the_rest(capsys, broken=False)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise OSError('no value')", "failed to compute values.*no value"),
        ("return np.zeros(7)", r"per_query must return one number per query, shape \(1,\)"),
        ("return None", "per_query must return one number per query"),
    ],
)
def test_metrics_that_fail(good, capsys, body, message):
    good.add(DIST, METRIC.format(body=body), metrics={"odd": "Odd"})
    with pytest.raises(PluginError, match=f"'odd' of odd-plugin 1.5.*{message}"):
        gbmrank.metric("odd").score([1, 0], [0.5, 0.1])
    assert gbmrank.metric("ndcg").score([1, 0], [0.5, 0.1]) == 1.0
    hold_the_rest(capsys, broken=False)


def test_a_clash_with_a_builtin(good, capsys):
    good.add(DIST, GOOD.replace("fine", "logistic"), losses={"logistic": "logistic"})
    template: Any = gbmrank.objective("ranknet").template
    assert type(template.loss) is Logistic
    other = gbmrank.objective("comparison", loss=f"{DIST}:logistic(c=3)")
    assert str(other) == f"comparison(loss={DIST}:logistic(c=3))"
    assert gbmrank.objective(str(other)) == other
    assert other != gbmrank.objective("ranknet")
    assert other.loss([1, 0], [0.0, 0.0]) == 3.0
    told = hold_the_rest(capsys, broken=False)
    assert f"use {DIST}:logistic" in told


def test_a_clash_with_another_plugin(good, capsys):
    good.add(DIST, GOOD, losses={"fine": "fine"})
    with pytest.raises(RegistrationError, match=r"good-plugin 1.5 and odd-plugin 1.5|odd-.*good-"):
        gbmrank.objective("comparison", loss="fine")
    for distribution in ("good-plugin", DIST):
        text = f"comparison(loss={distribution}:fine(c=2))"
        made = gbmrank.objective(text)
        assert str(made) == text
        assert gbmrank.objective(str(made)) == made
    assert main(["plugins", "doctor"]) == 0
    told = capsys.readouterr().out
    assert "use good-plugin:fine" in told
    assert f"use {DIST}:fine" in told


@pytest.mark.parametrize(
    ("register", "group"),
    [
        (gbmrank.register_loss, "losses"),
        (gbmrank.register_objective, "objectives"),
        (gbmrank.register_metric, "metrics"),
        (gbmrank.register_utility, "utilities"),
    ],
)
def test_a_notebook_cannot_take_the_name_of_a_plugin(good, register, group):
    module = good.add(DIST, "raise RuntimeError('imported')", **{group: {"shadowed": "odd"}})
    known = {"objectives": OBJECTIVES.get("comparison"), "metrics": METRICS.get("ndcg")}
    bases: dict[str, Any] = {**known, "utilities": UTILITIES.get("identity")}

    def shadowed(z):
        return -z, -1.0, 0.0

    mine: Any = (
        shadowed
        if group == "losses"
        else type("Shadowed", (bases[group],), {"name": "shadowed", "aliases": ()})
    )
    with pytest.raises(RegistrationError, match=r"taken by the plugin odd-plugin 1.5; choose"):
        register(mine)
    assert module not in sys.modules


def test_a_plugin_that_registers_itself_too_is_still_the_plugin(good):
    source = "import gbmrank\n\n@gbmrank.register_loss\n" + GOOD.replace("fine", "registers_itself")
    good.add(DIST, source, losses={"registers_itself": "registers_itself"})
    made: Any = gbmrank.objective("comparison", loss="registers_itself(c=2)").template
    assert str(LOSSES.origin_of(type(made.loss))) == f"{DIST} 1.5"
    (entry,) = LOSSES.entries["registers_itself"]
    assert entry.origin.distribution == DIST


WRITES_LABELS = """
from dataclasses import dataclass
from typing import ClassVar
from gbmrank.extend import AbstractObjective, bind_queries

def one_query(labels, scores, grad, hess):
    {change}
    grad += scores - labels
    hess += 1.0
    return 0.5 * ((scores - labels) ** 2).sum()

@dataclass(frozen=True, slots=True, kw_only=True)
class Odd(AbstractObjective):
    name: ClassVar[str] = "odd"
    hessian_trait: ClassVar[str] = "exact"
    def bind(self, data):
        return bind_queries(self, data, one_query)
"""


@pytest.mark.parametrize("change", ["labels[0] = 1.0", "labels -= labels.mean()"])
def test_a_query_function_that_changes_its_labels_is_told_that_they_are_read_only(good, change):
    good.add(DIST, WRITES_LABELS.format(change=change), objectives={"odd": "Odd"})
    with pytest.raises(PluginContractError, match=r"cannot be compiled") as caught:
        gbmrank.objective("odd").gradients([1, 0], [0.0, 0.3])
    assert "labels and scores are read-only: make a copy" in str(caught.value)


def test_plugins_can_be_switched_off(good, monkeypatch, capsys):
    good.add(DIST, "raise RuntimeError('boom')", losses={"odd": "odd"})
    for value, names in (("0", set()), ("good-plugin", {"fine"})):
        monkeypatch.setenv("GBMRANK_PLUGINS", value)
        LOSSES.refresh()
        assert {"fine", "odd"} & set(LOSSES) == names


UNCOMPILED = """
from scipy.special import expit

def odd(z, c=1.0):
    p = float(expit(-c * z))
    return max(-c * z, 0.0) + 0.1 * p, -c * p, c * c * p * (1.0 - p)
"""


NAMED = threading.Event()
SLOW = """
import tests.plugins.test_faults as tested
{at_import}
def odd(z):
    tested.NAMED.wait(60)
    return z * z, 2 * z, 2.0
"""


class Named(logging.Handler):
    """Lets a plugin go on once it is named."""

    def emit(self, record):
        NAMED.set()


@pytest.mark.parametrize("at_import", ["", "tested.NAMED.wait(60)"])
def test_a_plugin_that_takes_long_to_check_is_named(good, monkeypatch, caplog, at_import):
    """The plugin waits for the message: a busy machine has no fixed time for it."""
    NAMED.clear()
    good.add(DIST, SLOW.format(at_import=at_import), losses={"odd": "odd"})
    monkeypatch.setattr("gbmrank.errors._PATIENCE", 0.05)
    log, handler = logging.getLogger("gbmrank"), Named()
    log.addHandler(handler)
    try:
        assert LOSSES.get("odd").name == "odd"
    finally:
        log.removeHandler(handler)
    assert f"still checking the loss 'odd' of {DIST} 1.5, after 0.05 s" in caplog.text


def test_a_loss_that_cannot_be_compiled_shows_the_line(good, capsys):
    module = good.add(DIST, UNCOMPILED, losses={"odd": "odd"})
    for template in ("comparison", "pairwise", "push", "pointwise"):
        with pytest.raises(PluginContractError) as caught:
            gbmrank.objective(template, loss="odd").gradients([1, 0], [0.0, 0.3])
        text = str(caught.value)
        assert f"{module}.odd of {DIST} 1.5 cannot be compiled" in text
        assert "'expit'" in text
        assert f"{module}.py:5" in text
        assert "p = float(expit(-c * z))" in text
        assert "GBMRANK_SLOW_PLUGINS=1" in text
    assert f"{module}.odd of {DIST} 1.5 cannot be compiled" in hold_the_rest(capsys)


def test_the_slow_path_is_opened_on_request(good, monkeypatch):
    good.add(DIST, UNCOMPILED, losses={"odd": "odd"})
    monkeypatch.setenv("GBMRANK_SLOW_PLUGINS", "1")
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 40).astype(float), rng.normal(size=40)
    made = gbmrank.objective("comparison", loss="odd", normalize="none")
    with pytest.warns(gbmrank.GbmrankWarning, match=r"odd of odd-plugin 1.5 .* plain Python"):
        grad, _ = made.gradients(labels, scores)
    by_hand = np.zeros(40)
    for i in range(40):
        for j in range(40):
            if labels[i] > labels[j]:
                slope = -1.0 / (1.0 + np.exp(scores[i] - scores[j]))
                by_hand[[i, j]] += slope, -slope
    np.testing.assert_allclose(grad, by_hand, rtol=1e-10)
    slow, built_in = (gbmrank.objective("pairwise", loss=loss) for loss in ("odd", "logistic"))
    pairs = zip(slow.gradients(labels, scores), built_in.gradients(labels, scores), strict=True)
    for found, wanted in pairs:  # the slopes of both losses are the same
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    margins = scores[labels == 1][:, None] - scores[labels == 0]
    means = (np.maximum(-margins, 0.0) + 0.1 / (1.0 + np.exp(margins))).mean(axis=0)
    push = gbmrank.objective("push", loss="odd", normalize="none")
    assert push.loss(labels, scores) == pytest.approx(np.mean(means**4), rel=1e-12)
    assert np.isfinite(push.gradients(labels, scores)).all()
