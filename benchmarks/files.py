"""``gbmrank train`` on a folder of Parquet files beside a script for the same model, by hand.

The script keeps the features of the files in one file of its own, from which LightGBM reads through
a Sequence and XGBoost through a DataIter, and trains with our objective as it is.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.growing import FEATURES, OURS, PER_QUERY, make_rows
from benchmarks.settings import Settings
from benchmarks.timing import print_table

_PASSES, _ROUNDS, _AT_ONCE = 3, 20, 1 << 16
_SUFFIX = {"lightgbm": "txt", "xgboost": "ubj"}


def run(settings: Settings) -> None:
    """Print processor time and peak memory of both, each in a process of its own."""
    n_rows = 20_000 if settings.quick else 1_000_000
    table = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data")
        _write(data, n_rows)
        for booster, suffix in _SUFFIX.items():
            out = f"{folder}/model.{suffix}"
            threads = str(settings.threads)
            ours = [*("gbmrank", "train", str(data), "--backend", booster, "--objective", OURS)]
            ours += ["--rounds", str(_ROUNDS), "--out", out, "--threads", threads, "--force"]
            by_hand = ["benchmarks.files", booster, str(data), out, threads]
            found: dict[str, list[tuple[float, float]]] = {"ours": [], "by hand": []}
            for _ in range(settings.repeats(_PASSES)):
                found["ours"].append(_cost([*ours, "--checkpoint", str(_ROUNDS), "--quiet"]))
                found["by hand"].append(_cost(by_hand))
            for at, (what, form) in enumerate((("processor, s", ".1f"), ("peak, MB", ".0f"))):
                one, other = (min(cost[at] for cost in found[name]) for name in found)
                table.append([booster, what, f"{one:{form}}", f"{other:{form}}", one / other])
    for row in table:
        row[-1] = f"{row[-1]:.2f}"
    print_table(
        [f"{n_rows:,} rows in files", "least of", "gbmrank train", "by hand", "ratio"], table
    )


def _cost(module: list[str]) -> tuple[float, float]:
    """Run a module in a process; return its processor time and its peak without mapped files."""
    before = os.times()
    peak = [0.0]
    child = subprocess.Popen([sys.executable, "-m", *module], stdout=subprocess.DEVNULL)
    watch = threading.Thread(target=_watch, args=(child, peak))
    watch.start()
    if child.wait():
        raise RuntimeError(f"{' '.join(module)} failed")
    watch.join()
    after = os.times()
    spent = after.children_user + after.children_system
    return spent - before.children_user - before.children_system, peak[0]


def _watch(child: "subprocess.Popen[bytes]", peak: list[float]) -> None:
    """Note the largest memory of a process that belongs to no file."""
    status = Path(f"/proc/{child.pid}/status")
    while child.poll() is None:
        try:
            lines = status.read_text(encoding="ascii").splitlines()
        except OSError:  # it has just ended
            return
        used = [int(line.split()[1]) / 1e3 for line in lines if line.startswith("RssAnon:")]
        peak[0] = max(peak[0], *used, 0.0)
        time.sleep(0.01)


def _write(folder: Path, n_rows: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir()
    part = n_rows // 10
    for at in range(10):
        rows = make_rows(part, at)
        columns = {f"f{n}": rows.features[:, n].astype(float) for n in range(FEATURES)}
        qid = at * part + np.arange(part) // PER_QUERY
        table = pa.table({"label": rows.labels, "qid": qid, **columns})
        parquet.write_table(table, folder / f"part-{at}.parquet", row_group_size=50_000)


def by_hand(booster: str, folder: str, out: str, threads: int) -> None:
    """Train with a booster's own means on rows from files."""
    from pyarrow import parquet

    import gbmrank

    dtype, path = np.dtype("<f8" if booster == "lightgbm" else "<f4"), Path(f"{out}.rows")
    labels, ids = [], []
    with path.open("wb") as file:
        for one in sorted(Path(folder).iterdir()):
            with parquet.ParquetFile(one) as opened:
                for batch in opened.iter_batches(_AT_ONCE):
                    names = [name for name in batch.schema.names if name not in ("label", "qid")]
                    columns = [batch[name].to_numpy() for name in names]
                    np.column_stack(columns).astype(dtype, copy=False).tofile(file)
                    labels.append(batch["label"].to_numpy().copy())
                    ids.append(batch["qid"].to_numpy().copy())
    y, qid = np.concatenate(labels), np.concatenate(ids)
    rows = np.memmap(path, dtype, "r", shape=(len(y), len(names)))
    objective = gbmrank.objective(OURS)
    gbmrank.set_num_threads(threads)
    train = _lightgbm if booster == "lightgbm" else _xgboost
    train(rows, y, qid, objective, names, threads, out)
    path.unlink()


def _lightgbm(
    rows: Any, y: Any, qid: Any, objective: Any, names: list[str], threads: int, out: str
) -> None:
    import lightgbm as lgb

    class Rows(lgb.Sequence):  # type: ignore[misc]
        batch_size = _AT_ONCE

        def __len__(self) -> int:
            return len(rows)

        def __getitem__(self, at: Any) -> Any:
            return np.array(rows[at])

    params = {"num_threads": threads, "metric": "None", "verbosity": -1, "seed": 0}
    params |= {"force_col_wise": True, "feature_pre_filter": False, "objective": objective}
    params |= {"min_sum_hessian_in_leaf": 1e-6}
    sizes = np.unique(qid, return_counts=True)[1]
    data = lgb.Dataset(
        Rows(),
        y,
        group=sizes,
        feature_name=names,
        params={name: value for name, value in params.items() if name != "objective"},
    )
    lgb.train(params, data, _ROUNDS).save_model(out)


def _xgboost(
    rows: Any, y: Any, qid: Any, objective: Any, names: list[str], threads: int, out: str
) -> None:
    import xgboost as xgb

    cuts = np.searchsorted(qid, qid[np.arange(_AT_ONCE, len(y), _AT_ONCE)])
    parts = [slice(*pair) for pair in zip([0, *cuts], [*cuts, len(y)], strict=True)]

    class Rows(xgb.DataIter):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(cache_prefix=f"{out}.pages")
            self.reset()

        def reset(self) -> None:
            self.left = iter(parts)

        def next(self, input_data: Any) -> bool:
            if (part := next(self.left, None)) is not None:
                about = {"label": y[part], "qid": qid[part], "feature_names": names}
                input_data(data=np.array(rows[part]), **about)
            return part is not None

    data = xgb.ExtMemQuantileDMatrix(Rows(), nthread=threads)
    params = {"nthread": threads, "base_score": 0.0, "min_child_weight": 1e-3, "seed": 0}
    params |= {"disable_default_eval_metric": 1}
    xgb.train(params, data, _ROUNDS, obj=objective).save_model(out)


if __name__ == "__main__":
    _booster, _folder, _out, _threads = sys.argv[1:]
    by_hand(_booster, _folder, _out, int(_threads))
