"""Reading a ranker back from the booster's own file."""

import os
import warnings
from pathlib import Path

from gbmrank.backends.lightgbm_trainer import load_lightgbm
from gbmrank.backends.trainer import Fitted
from gbmrank.backends.xgboost_trainer import load_xgboost
from gbmrank.data.files import is_unchanged
from gbmrank.errors import DataError, GbmrankWarning
from gbmrank.estimators.gbm_ranker import GBMRanker
from gbmrank.estimators.identity import Identity

__all__ = ["load"]


def load(path: str | os.PathLike[str], *, verify: bool = True) -> GBMRanker:
    """Read a ranker that :meth:`GBMRanker.save` wrote.

    The file is LightGBM's text or XGBoost's JSON or UBJSON; nothing in it is executed.

    Parameters
    ----------
    path : str or path
        The file.
    verify : bool, default=True
        Refuse a file whose bytes changed since :meth:`GBMRanker.save` wrote it. False reads one
        that was changed on purpose; whether it is a whole model is looked at all the same.

    Returns
    -------
    GBMRanker
        It predicts what the saved one did; ``evals_result_`` is empty.

    Warns
    -----
    GbmrankWarning
        When the ranker was made with preferences, which are not in its file: ``score`` and
        ``fit`` of what is returned go by labels.

    Raises
    ------
    DataError
        When the file is no model, was damaged, was not saved by gbmrank, or by a newer one.
    """
    fitted, text = _read(Path(path), verify)
    if text is None:
        raise DataError(
            f"{path} is a model of {fitted.backend} without what gbmrank writes into one, so its "
            f"objective and metric are unknown; read it with {fitted.backend}.Booster"
        )
    identity = Identity.from_text(text, str(path))
    if identity.preferences:
        warnings.warn(
            f"{path} was trained or measured with preferences, which model files do not hold: it "
            "predicts as before, but fit and score would go by labels; set objective= and metric= "
            "made with preferences= before you use them",
            GbmrankWarning,
            stacklevel=2,
        )
    model = GBMRanker(identity.objective, identity.backend, identity.metric, **identity.params)
    return model._hold(fitted, identity, {})


def _read(path: Path, verify: bool) -> tuple[Fitted, str | None]:
    if path.is_dir():
        raise DataError(f"{path} is a folder; give the model file itself")
    with path.open("rb") as file:
        start = file.read(8)
        if not start.startswith((b"tree", b"{")):
            raise DataError(f"{path} is neither a LightGBM nor an XGBoost model file")
        data = start + file.read()
    if verify and not is_unchanged(data):
        raise DataError(
            f"{path} is not the file that gbmrank wrote: its checksum does not fit. It was "
            "damaged, for instance by converted line ends, or edited, or the booster saved it "
            "again. Take another copy or save the model anew; if the change is meant, "
            "gbmrank.load(path, verify=False) reads the file without its checksum"
        )
    read = load_lightgbm if start.startswith(b"tree") else load_xgboost
    return read(data, str(path))
