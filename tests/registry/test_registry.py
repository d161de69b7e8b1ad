"""The registry with fake entry points: lazy, isolated, never overriding built-ins."""

import importlib.metadata
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import gbmrank
from gbmrank.errors import (
    PluginContractError,
    PluginError,
    RegistrationError,
    UnknownNameError,
)
from gbmrank.losses import AbstractLoss, Logistic
from gbmrank.losses.base import AbstractMarginLoss
from gbmrank.registry import LOSSES, METRICS, OBJECTIVES, UTILITIES, Registry
from gbmrank.registry.entry_points import installed as read_installed


def steep(z, factor):
    return -factor * z, -factor, 0.0


def make_loss(called: str) -> Any:
    @dataclass(frozen=True, slots=True)
    class Steep(AbstractMarginLoss):
        factor: float = 1.0
        name: ClassVar[str] = called
        phi = staticmethod(steep)

    return Steep


class FakeDistribution:
    def __init__(self, name, version):
        self.name, self.version = name, version


class FakePoint:
    """An entry point that counts how often it is loaded."""

    def __init__(self, name, load, distribution="demo-plugin", version="1.2"):
        self.name, self._load = name, load
        self.dist = FakeDistribution(distribution, version)
        self.loads = 0

    def load(self):
        self.loads += 1
        return self._load()


def registry_with(*points: Any, builtins: Any = (Logistic,)) -> Registry[AbstractLoss]:
    return Registry("loss", AbstractLoss, builtins, lambda: points)


def raising(error):
    def load():
        raise error

    return load


def test_listing_loads_nothing():
    point = FakePoint("steep", lambda: make_loss("steep"))
    registry = registry_with(point)
    assert list(registry) == ["logistic", "steep"]
    assert "steep" in registry
    assert str(registry.entries["steep"][0].origin) == "demo-plugin 1.2"
    assert registry.entries["logistic"][0].origin.distribution == "gbmrank"
    assert point.loads == 0


def test_entry_points_are_read_once_and_only_when_needed():
    reads: list[int] = []

    def read():
        reads.append(1)
        return ()

    registry: Registry[AbstractLoss] = Registry("loss", AbstractLoss, (Logistic,), read)
    assert registry.get("logistic") is Logistic
    assert reads == []
    list(registry)
    list(registry)
    assert reads == [1]
    registry.refresh()
    list(registry)
    assert reads == [1, 1]


def test_a_plugin_is_loaded_when_asked_for_and_once():
    loss = make_loss("steep")
    point = FakePoint("steep", lambda: loss)
    registry = registry_with(point)
    assert registry.get("steep") is loss
    assert registry.get("STEEP") is loss
    assert registry.get("demo-plugin:steep") is loss
    assert registry.get("Demo_Plugin:steep") is loss
    assert point.loads == 1


def test_two_distributions_with_one_name_must_be_told_apart():
    first, second = make_loss("steep"), make_loss("steep")
    registry = registry_with(
        FakePoint("steep", lambda: first, "alpha"),
        FakePoint("steep", lambda: second, "beta", "2.0"),
    )
    with pytest.raises(RegistrationError) as caught:
        registry.get("steep")
    message = str(caught.value)
    assert "alpha 1.2 and beta 2.0" in message
    assert "use 'alpha:steep' or 'beta:steep'" in message
    assert registry.get("alpha:steep") is first
    assert registry.get("beta:steep") is second
    assert [entry.origin.distribution for entry in registry.entries["steep"]] == ["alpha", "beta"]


def test_a_plugin_never_overrides_a_builtin():
    other = make_loss("logistic")
    registry = registry_with(FakePoint("logistic", lambda: other))
    assert registry.get("logistic") is Logistic
    assert registry.get("gbmrank:logistic") is Logistic
    assert registry.get("demo-plugin:logistic") is other


def test_a_plugin_never_hides_behind_an_alias_of_a_builtin():
    class WithAlias(Logistic):  # type: ignore[misc]
        name: ClassVar[str] = "first"
        aliases: ClassVar[tuple[str, ...]] = ("second",)

    other = make_loss("second")
    registry = registry_with(FakePoint("second", lambda: other), builtins=(WithAlias,))
    assert registry.get("second") is WithAlias
    assert registry.get("demo-plugin:second") is other


@pytest.mark.parametrize(
    "error", [ImportError("no module numba_x"), SystemExit(3), RuntimeError("boom"), SyntaxError()]
)
def test_a_broken_plugin_is_isolated_and_raises_its_cause_when_asked_for(error):
    fine = make_loss("fine")
    registry = registry_with(FakePoint("broken", raising(error)), FakePoint("fine", lambda: fine))
    assert list(registry) == ["broken", "fine", "logistic"]
    assert registry.get("fine") is fine
    for _ in range(2):
        with pytest.raises(PluginError, match=r"'broken' of demo-plugin 1.2.*uninstall") as caught:
            registry.get("broken")
        assert caught.value.__cause__ is error


def test_ctrl_c_is_not_a_broken_plugin():
    registry = registry_with(FakePoint("broken", raising(KeyboardInterrupt())))
    with pytest.raises(KeyboardInterrupt):
        registry.get("broken")


@pytest.mark.parametrize(
    ("loaded", "message"),
    [
        (3, "a loss must be a subclass of gbmrank.losses.base.AbstractLoss; demo-plugin 1.2"),
        (dict, "a loss must be a subclass of"),
        (make_loss("other_name"), "make the names equal"),
    ],
)
def test_a_plugin_that_is_not_what_it_says_breaks_the_contract(loaded, message):
    with pytest.raises(PluginContractError, match=message):
        registry_with(FakePoint("steep", lambda: loaded)).get("steep")


def test_an_incomplete_class_is_rejected_with_what_it_lacks():
    class Half(AbstractLoss):
        name: ClassVar[str] = "half"

    with pytest.raises(PluginContractError, match=r"'half' of demo-plugin 1.2.*define .*kappa"):
        registry_with(FakePoint("half", lambda: Half)).get("half")
    with pytest.raises(PluginContractError, match="'half' of this process"):
        registry_with().register(Half)


def test_an_entry_point_with_an_odd_name_says_so():
    registry = registry_with(FakePoint("My-Loss", lambda: make_loss("my_loss")))
    with pytest.raises(PluginContractError, match="'My-Loss', but its class is named 'my_loss'"):
        registry.get("my-loss")


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("logistc", "did you mean 'logistic'?"),
        ("Logisitc", "did you mean 'logistic'?"),
        ("qqqqq", "known: logistic, steep"),
        ("nowhere:logistic", "no loss is called 'nowhere:logistic'"),
    ],
)
def test_an_unknown_name_suggests(asked, hint):
    point = FakePoint("steep", lambda: make_loss("steep"))
    with pytest.raises(UnknownNameError) as caught:
        registry_with(point).get(asked)
    assert f"no loss is called {asked!r}" in str(caught.value)
    assert hint in str(caught.value)
    assert isinstance(caught.value, LookupError)
    assert point.loads == 0


def test_the_view_is_read_only():
    with pytest.raises(TypeError):
        LOSSES.entries["mine"] = ()  # type: ignore[index]


def test_registering_twice_is_harmless_and_another_class_is_not():
    registry = registry_with()
    mine = make_loss("mine")
    assert registry.register(mine) is mine
    registry.register(mine)
    assert registry.get("mine") is mine
    assert registry.entries["mine"][0].origin.distribution == "this process"

    class Other(Logistic):  # type: ignore[misc]
        name: ClassVar[str] = "mine"

    with pytest.raises(RegistrationError, match="'mine'"):
        registry.register(Other)


def test_a_class_defined_again_replaces_itself_as_in_a_notebook():
    registry = registry_with()
    registry.register(make_loss("mine"))
    again = make_loss("mine")  # the same module and qualified name
    assert registry.register(again) is again
    assert registry.get("mine") is again


def test_a_builtin_name_cannot_be_taken():
    with pytest.raises(RegistrationError, match=r"'logistic' is taken by gbmrank"):
        registry_with().register(make_loss("logistic"))


@pytest.mark.parametrize("name", ["", "Big", "a b", "1x", "a-b", "a@b"])
def test_names_are_lower_snake_case(name):
    with pytest.raises(RegistrationError, match="lower-case letters, digits and '_'"):
        registry_with().register(make_loss(name))


def test_decorators_register_for_this_process():
    loss = gbmrank.register_loss(make_loss("test_registry_loss"))
    assert LOSSES.get("test_registry_loss") is loss
    listed = {entry.name: entry for entry in gbmrank.list_losses()}
    assert str(listed["test_registry_loss"].origin) == "this process"
    assert listed["logistic"].load() is Logistic


def test_every_kind_lists_its_builtins_with_their_origin():
    kinds: list[tuple[Any, str]] = [
        (gbmrank.list_losses(), "logistic"),
        (gbmrank.list_objectives(), "pairwise"),
        (gbmrank.list_metrics(), "ndcg"),
        (gbmrank.list_utilities(), "ndcg"),
    ]
    for entries, name in kinds:
        found = {entry.name: entry for entry in entries}
        assert found[name].origin.distribution == "gbmrank"
        assert found[name].origin.version == gbmrank.__version__


@pytest.fixture
def installed(monkeypatch):
    points = [
        FakePoint("one", lambda: make_loss("one"), "gbmrank-alpha"),
        FakePoint("two", lambda: make_loss("two"), "gbmrank_beta"),
    ]

    def found(group):
        assert group == "gbmrank.losses"
        return points

    monkeypatch.setattr(importlib.metadata, "entry_points", found)
    return lambda: [point.name for point in read_installed("gbmrank.losses")()]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ["one", "two"]),
        ("", ["one", "two"]),
        ("0", []),
        ("gbmrank-alpha", ["one"]),
        (" gbmrank-beta ,", ["two"]),
        ("numpy", []),
    ],
)
def test_an_environment_variable_limits_plugins(monkeypatch, installed, value, expected):
    monkeypatch.delenv("GBMRANK_PLUGINS", raising=False)
    if value is not None:
        monkeypatch.setenv("GBMRANK_PLUGINS", value)
    assert installed() == expected


def test_the_name_of_an_installed_plugin_cannot_be_taken():
    point = FakePoint("steep", lambda: make_loss("steep"))
    registry = registry_with(point)
    with pytest.raises(RegistrationError) as caught:
        registry.register(make_loss("steep"))
    message = str(caught.value)
    assert "the loss name 'steep' is taken by the plugin demo-plugin 1.2; choose another" in message
    assert "GBMRANK_PLUGINS to a list without demo-plugin" in message
    assert point.loads == 0
    for _ in range(2):  # one's own names stay free, as when a cell is run again
        registry.register(make_loss("mine"))
    assert registry.get("demo-plugin:steep").__name__ == "Steep"


def test_an_alias_cannot_hide_an_installed_plugin():
    class WithAlias(Logistic):  # type: ignore[misc]
        name: ClassVar[str] = "mine"
        aliases: ClassVar[tuple[str, ...]] = ("steep",)

    registry = registry_with(FakePoint("steep", lambda: make_loss("steep")))
    with pytest.raises(RegistrationError, match="'steep' is taken by the plugin demo-plugin"):
        registry.register(WithAlias)


def test_an_alias_cannot_hide_a_preset():
    class WithAlias(Logistic):  # type: ignore[misc]
        name: ClassVar[str] = "mine"
        aliases: ClassVar[tuple[str, ...]] = ("Steep-Logistic",)

    presets = {"steep_logistic": "logistic(sigma=4)"}
    registry: Registry[AbstractLoss] = Registry(
        "loss", AbstractLoss, (Logistic,), tuple, presets=presets
    )
    with pytest.raises(RegistrationError, match="'steep_logistic' is a preset"):
        registry.register(WithAlias)
    assert "mine" not in registry


def test_an_alias_is_found_however_it_is_written():
    class WithAlias(Logistic):  # type: ignore[misc]
        name: ClassVar[str] = "mine"
        aliases: ClassVar[tuple[str, ...]] = ("My-Loss",)

    registry = registry_with()
    registry.register(WithAlias)
    assert registry.get("my_loss") is registry.get("My-Loss") is WithAlias


def test_a_builtin_that_a_plugin_offers_too_is_said_to_be_built_in():
    registry = registry_with(FakePoint("logistic", lambda: make_loss("logistic")))
    with pytest.raises(RegistrationError, match="'logistic' is taken by gbmrank"):
        registry.register(make_loss("logistic"))


def test_a_plugin_may_register_what_its_entry_point_names():
    loss = make_loss("steep")
    point = FakePoint("steep", lambda: loss)
    point.module = __name__  # type: ignore[attr-defined]
    registry = registry_with(point)
    assert registry.register(loss) is loss
    assert point.loads == 0
    assert registry.get("steep") is loss
    assert str(registry.origin_of(loss)) == "demo-plugin 1.2"


def test_plugins_are_read_from_the_four_public_groups(monkeypatch):
    asked = []

    def found(*, group):
        asked.append(group)
        return []

    monkeypatch.delenv("GBMRANK_PLUGINS", raising=False)
    monkeypatch.setattr(importlib.metadata, "entry_points", found)
    for registry in (LOSSES, OBJECTIVES, METRICS, UTILITIES):
        registry.refresh()
        assert list(registry)
        registry.refresh()
    assert asked == ["gbmrank.losses", "gbmrank.objectives", "gbmrank.metrics", "gbmrank.utilities"]


def test_real_entry_points_are_found(tmp_path, monkeypatch):
    """A distribution on the path, without an installer: the way entry points really come."""
    (tmp_path / "steep_plugin.py").write_text("raise RuntimeError('must not be imported')")
    info = tmp_path / "steep_plugin-3.4.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: steep-plugin\nVersion: 3.4\n")
    (info / "entry_points.txt").write_text("[gbmrank.losses]\nsteep = steep_plugin:Steep\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("GBMRANK_PLUGINS", raising=False)
    registry = Registry("loss", AbstractLoss, (Logistic,), read_installed("gbmrank.losses"))
    assert str(registry.entries["steep"][0].origin) == "steep-plugin 3.4"
    with pytest.raises(PluginError, match="must not be imported"):
        registry.get("steep")
