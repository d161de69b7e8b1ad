"""Systems of a comparison: objectives in boosters, and the baseline."""

import difflib
import importlib.util
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from gbmrank.api import Metric, Objective
from gbmrank.api.committees import Committee, objectives_in, ranking_objective
from gbmrank.boosters.base import Booster
from gbmrank.boosters.plan import PREFIX, Native, native_lists, near_native
from gbmrank.boosters.supported import BACKENDS, BOOSTERS, booster_named
from gbmrank.errors import ConfigError, GbmrankError, MissingBackendError, UnknownNameError
from gbmrank.estimators.committee import default_members
from gbmrank.experiments.click_logs import check_correction
from gbmrank.experiments.results import DEBIASED, System, split_name
from gbmrank.objectives import held_preferences
from gbmrank.registry.catalogue import OBJECTIVES
from gbmrank.registry.composition import build, spec_of
from gbmrank.registry.spec import parse
from gbmrank.theory.verdicts.advice import recommended, target_for


class Chosen(NamedTuple):
    """Systems to train, the objective of each, and notes about those left out."""

    systems: tuple[System, ...]
    objectives: Mapping[str, Objective | Native | Committee]
    notes: tuple[str, ...]


def choose_systems(objectives: Iterable[Any], backends: Sequence[str] | None) -> Chosen:
    """Pair objectives with boosters; a native objective only with the booster that has it."""
    chosen = _check_backends(backends)
    named = _named(objectives)
    systems, notes = [], []
    for name, one in named.items():
        native = {each.name for each in _natives(one)}
        able = [b for b in chosen if native.issubset(_own(booster_named(b)))]
        systems += [System(backend, name) for backend in able]
        if not able:
            owners = [b.name for b in BOOSTERS if native.issubset(_own(b))]
            whose = f"belongs to {owners[0]}, which" if owners else "needs several boosters, which"
            notes.append(f"{name} was left out: it {whose} is not compared")
    if not systems:
        raise ConfigError(f"nothing can run: {'; '.join(notes) or 'no objective is given'}")
    order = {backend: at for at, backend in enumerate(chosen)}
    systems.sort(key=lambda system: order[system.backend])
    return Chosen(tuple(systems), named, tuple(notes))


def find_baseline(systems: Sequence[System], given: str | None) -> System:
    """Return the system that others are compared with.

    By default the first whose scores are given, else the first with a native objective, else the
    first. ``given`` is an objective, the name of given scores, or a backend and an objective:
    ``xgboost native:rank:ndcg``.
    """
    if given is None:
        production = [one for one in systems if one.is_given]
        native = [one for one in systems if one.objective.startswith(PREFIX)]
        return (production or native or list(systems))[0]
    wanted = " ".join(given.split())
    found = [one for one in systems if wanted in (str(one), one.objective)]
    if not found:
        near = difflib.get_close_matches(wanted, [str(one) for one in systems], n=1)
        known = ", ".join(repr(str(one)) for one in systems)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {known}"
        raise UnknownNameError(f"the baseline {given!r} is not one of the systems; {hint}")
    return found[0]


def own_baselines(systems: Sequence[System]) -> tuple[System, ...]:
    """Return the default baseline of each booster, that of all of them first.

    Empty if one baseline serves all: scores of an existing model are given, there is one booster,
    or no booster has two systems.
    """
    first = find_baseline(systems, None)
    backends = dict.fromkeys([first.backend, *(one.backend for one in systems)])
    if first.is_given or len(backends) in (1, len(systems)):
        return ()
    own = ([one for one in systems if one.backend == backend] for backend in backends)
    return tuple(find_baseline(one, None) for one in own)


def title_of(system: System, *, booster: bool = True) -> str:
    """Return the name of a system in sentences: without ``native:`` and the default loss.

    >>> title_of(System("lightgbm", "pairwise(loss=logistic, target=ndcg@10)"))
    'LightGBM pairwise(target=ndcg@10)'
    >>> title_of(System("xgboost", "native:rank:ndcg"), booster=False)
    'rank:ndcg'
    >>> title_of(System("lightgbm", "lambdarank"))  # not the booster's own
    "LightGBM gbmrank's lambdarank"
    """
    if system.is_given:
        return str(system)
    known = next((one for one in BOOSTERS if one.name == system.backend), None)
    name = _without_default_loss(system.objective).replace(PREFIX, "")
    if known is not None and system.objective in known.native:
        name = f"gbmrank's {name}"
    return f"{system.backend if known is None else known.title} {name}" if booster else name


def default_objectives(target: Metric, *, quick: bool = False) -> list[str]:
    """Return default objectives: the recommended one, a committee, and what they must beat.

    That is the ranking loss of each booster, its squared error and that of the gains, and as many
    models of the ranking loss as the committee has. ``quick`` leaves out what trains several.
    """
    own = [f"{PREFIX}{name}" for one in BOOSTERS for name in one.tuning.baselines]
    gains = f"pointwise(loss=squared, target={spec_of(target_for(target.measure))})"
    plain = [gains, *(f"{PREFIX}{one.squared_error}" for one in BOOSTERS)]
    first = recommended(target.measure).objective
    if quick:
        return [first, *own, *plain]
    models = len(default_members(target))
    costly = [f"{Committee.name}({name}, seeds={models})" for name in own]
    return [first, Committee.name, *own, *plain, *costly]


def installed_backends() -> tuple[str, ...]:
    """Return the boosters that are installed, without importing them."""
    return tuple(name for name in BACKENDS if importlib.util.find_spec(name) is not None)


def split_list(text: str) -> list[str]:
    """Split a list at the commas outside of brackets and quotes.

    >>> split_list("pairwise(loss=logistic, target=dcg), native:rank:ndcg")
    ['pairwise(loss=logistic, target=dcg)', 'native:rank:ndcg']
    """
    pieces = re.findall(r"""'[^']*'|"[^"]*"|.""", text, re.DOTALL)
    depth, cut = 0, [""]
    for piece in pieces:
        depth += (piece in "([") - (piece in ")]")
        if piece == "," and depth == 0:
            cut.append("")
        else:
            cut[-1] += piece
    return [part.strip() for part in cut if part.strip()]


def _without_default_loss(text: str) -> str:
    how, minimised = split_name(text)
    try:
        spec = parse(minimised)
        if "loss" not in dict(spec.params):
            return text
        usual = spec_of(getattr(build(OBJECTIVES, spec.name), "loss", None))
    except (GbmrankError, TypeError):  # not an objective of gbmrank
        return text
    kept = tuple((key, one) for key, one in spec.params if (key, str(one)) != ("loss", str(usual)))
    return f"{how}:{replace(spec, params=kept)}" if how else str(replace(spec, params=kept))


def _named(objectives: Iterable[Any]) -> dict[str, Objective | Native | Committee]:
    """Return objectives by name, which is the text they were given as."""
    if isinstance(objectives, str):
        objectives = split_list(objectives)
    if isinstance(objectives, Objective | Native | Committee):
        objectives = [objectives]
    named: dict[str, Objective | Native | Committee] = {}
    first: dict[Any, str] = {}
    for given in objectives:
        how, name, one = _read(given)
        if name in named or (how, one) in first:
            known = first.get((how, one), name)
            other = "" if known == name else f", also as {known!r}"
            raise ConfigError(f"the objective {name!r} is given twice{other}")
        named[name], first[how, one] = one, name
    return named


def _read(given: Any) -> tuple[str | None, str, Objective | Native | Committee]:
    """Return the way of training, if any, the name of a system, and its objective."""
    how, minimised = split_name(given) if isinstance(given, str) else (None, given)
    one = ranking_objective(minimised)
    name = " ".join(minimised.split()) if isinstance(minimised, str) else str(one)
    for native in _natives(one):
        if not any(native.name in _own(booster) for booster in BOOSTERS):
            near = near_native(native.name)
            hint = "" if near is None else f"did you mean {near}? "
            raise UnknownNameError(f"no booster has {str(native)!r}; {hint}{native_lists()}")
    if isinstance(one, Native):
        name = str(one)
    elif any(held_preferences(each.template) for each in objectives_in(one)):
        raise ConfigError(
            f"{name} has preferences between rows, which folds cannot use; give labels"
        )
    elif isinstance(given, Objective) and ranking_objective(name) != given:  # runs get the text
        raise ConfigError(f"{name} now refers to another objective; give yours a new name")
    if how == DEBIASED:
        check_correction(one)
    return how, name if how is None else f"{how}:{name}", one


def _own(booster: Booster) -> tuple[str, ...]:
    """Return the booster's own objectives that can be compared: rankers, and squared error."""
    return (*booster.native, booster.squared_error)


def _natives(one: Objective | Native | Committee) -> tuple[Native, ...]:
    members = one.members if isinstance(one, Committee) else (one,)
    return tuple(each for each in members if isinstance(each, Native))


def _check_backends(given: Sequence[str] | None) -> tuple[str, ...]:
    there = installed_backends()
    if given is None:
        if not there:
            extras = ",".join(BACKENDS)
            raise MissingBackendError(f"no booster is installed: pip install 'gbmrank[{extras}]'")
        return there
    names = (given,) if isinstance(given, str) else tuple(given)
    known = f"known: {', '.join(BACKENDS)}"
    if not names:
        raise ConfigError(f"backends is empty; {known}")
    for at, name in enumerate(names):
        if name not in BACKENDS:
            raise UnknownNameError(f"there is no backend {name!r}; {known}")
        if name in names[:at]:
            raise ConfigError(f"the backend {name!r} is given twice")
        if name not in there:
            raise MissingBackendError(
                f"backend={name} needs {name}: pip install 'gbmrank[{name}]', or leave it out"
            )
    return names
