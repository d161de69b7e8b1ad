"""Reading a ranker back from the booster's own file."""

import os
from pathlib import Path

from gbmrank.backends.lightgbm_trainer import load_lightgbm
from gbmrank.backends.trainer import Fitted
from gbmrank.backends.xgboost_trainer import load_xgboost
from gbmrank.errors import DataError
from gbmrank.estimators.gbm_ranker import GBMRanker
from gbmrank.estimators.identity import Identity

__all__ = ["load"]


def load(path: str | os.PathLike[str]) -> GBMRanker:
    """Read a ranker that :meth:`GBMRanker.save` wrote.

    The file is LightGBM's text or XGBoost's JSON or UBJSON; nothing in it is executed.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    GBMRanker
        It predicts what the saved one did; ``evals_result_`` is empty.

    Raises
    ------
    DataError
        When the file is no model, was not saved by gbmrank, or by a newer one.
    """
    fitted, text = _read(Path(path))
    if text is None:
        raise DataError(
            f"{path} is a model of {fitted.backend} without what gbmrank writes into one, so its "
            f"objective and metric are unknown; read it with {fitted.backend}.Booster"
        )
    identity = Identity.from_text(text, str(path))
    model = GBMRanker(identity.objective, identity.backend, identity.metric, **identity.params)
    return model._hold(fitted, identity, {})


def _read(path: Path) -> tuple[Fitted, str | None]:
    with path.open("rb") as file:
        start = file.read(8)
    if start.startswith(b"tree"):
        return load_lightgbm(str(path))
    if start.startswith(b"{"):
        return load_xgboost(str(path))
    raise DataError(f"{path} is neither a LightGBM nor an XGBoost model file")
