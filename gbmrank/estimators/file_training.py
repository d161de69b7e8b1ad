"""Training on rows on disk, with checkpoints from which it goes on after a kill.

At a checkpoint the training starts anew from the scores of the model so far, with another seed, in
a run that was killed and in one that was not: the generators of the boosters are not saved with a
model, so only this makes both models equal where rows or columns are sampled.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from gbmrank.api import Objective
from gbmrank.boosters.base import Part, Report, Trained
from gbmrank.boosters.plan import Native, Plan
from gbmrank.boosters.settings import truncation_obstacle
from gbmrank.boosters.supported import booster_named
from gbmrank.data.files import write_whole
from gbmrank.errors import ConfigError
from gbmrank.estimators.base import check_labels, warn_about_stopping
from gbmrank.estimators.committee import train
from gbmrank.estimators.model_file import read_model, write_model

_STATE = "checkpoint.json"
_SEEDS = 2**31
History = dict[str, dict[str, list[float]]]


@final
@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Where checkpoints are kept, after how many rounds, and what training they belong to."""

    folder: Path
    every: int
    key: str

    def read(self) -> tuple[Any, History, int]:
        """Return the model so far, or None, the values of its rounds, and their number."""
        path = self.folder / _STATE
        if not path.is_file():
            return None, {}, 0
        state = json.loads(path.read_bytes())
        if state["key"] != self.key:
            raise ConfigError(
                f"{self.folder} has the checkpoint of another training: its data or its options "
                "differ. Start over with --force, or give another --out"
            )
        fitted = read_model(self.folder / state["model"], True)[0]
        return fitted, state["history"], state.get("rounds", fitted.n_rounds)

    def write(self, fitted: Any, history: History, rounds: int) -> None:
        """Keep a model; the one before is removed once the new one is complete."""
        suffix = booster_named(fitted.backend).suffixes[0]
        name = f"checkpoint-{rounds}{suffix}"
        write_model(fitted, self.folder / name)
        state = {"key": self.key, "model": name, "history": history, "rounds": rounds}
        write_whole(self.folder / _STATE, json.dumps(state).encode())
        for old in self.folder.glob(f"checkpoint-*{suffix}"):
            if old.name != name:
                old.unlink()


def train_in_parts(
    plan: Plan,
    rows: Part,
    valid: Mapping[str, Part],
    checkpoints: Checkpoints,
    report: Report | None = None,
) -> Trained:
    """Train with checkpoints, going on from the last one; stop early by all rounds together.

    A round counts also if LightGBM finds no split, and so adds no tree.
    """
    if valid:
        check_labels(plan.metric, valid)
    if plan.early_stopping is not None:
        warn_about_stopping(plan.objective, plan.metric[0], valid)
    known = booster_named(plan.backend).parameters.by_main_names(plan.params)
    whole = truncation_obstacle(known) is not None  # dart rescales the trees before a checkpoint
    if whole or not isinstance(plan.objective, Objective | Native):
        return train(replace(plan, report=report), rows, valid)
    fitted, history, done = checkpoints.read()
    sign = 1.0 if plan.metric[0].higher_is_better else -1.0
    best, waiting = _best(history, plan.early_stopping, sign)
    while done < plan.rounds and waiting:
        rounds = min(checkpoints.every, plan.rounds - done)
        trained = train(
            replace(
                plan,
                rounds=rounds,
                early_stopping=None,
                keep_best=False,
                seed=(plan.seed + done) % _SEEDS,
                start=None if fitted is None else fitted.booster,
                report=None if report is None else _after(done, history, report),
            ),
            rows,
            valid,
        )
        fitted, history, done = trained.fitted, _joined(history, trained.history), done + rounds
        checkpoints.write(fitted, history, done)
        best, waiting = _best(history, plan.early_stopping, sign)
    kept = best + 1 if plan.early_stopping is not None and best >= 0 else fitted.n_rounds
    return Trained(fitted.first(kept), history, kept - 1)


def _after(done: int, history: History, report: Report) -> Report:
    return lambda rounds, found: report(done + rounds, _joined(history, found))


def _joined(first: Mapping[str, Any], more: Mapping[str, Any]) -> History:
    return {
        name: {
            metric: [*first.get(name, {}).get(metric, []), *column]
            for metric, column in found.items()
        }
        for name, found in more.items()
    }


def _best(history: History, patience: int | None, sign: float) -> tuple[int, bool]:
    """Return the best round up to where training stops, and whether to go on."""
    if not history:
        return -1, True
    column = next(iter(next(reversed(history.values())).values()))
    best = 0
    for at, value in enumerate(column):
        if sign * (value - column[best]) > 0.0:
            best = at
        if patience is not None and at - best >= patience:
            return best, False
    return best, True
