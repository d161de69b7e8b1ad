"""Reading a ranker of any kind from its file."""

import os
from pathlib import Path
from typing import Any

from gbmrank.errors import DataError, GbmrankWarning, warn
from gbmrank.estimators.gbm_ranker import GBMRanker
from gbmrank.estimators.goal_ranker import GoalRanker
from gbmrank.estimators.low_rank_ranker import LowRankRanker
from gbmrank.estimators.model_file import Archive, Identity, read_model
from gbmrank.estimators.pair_ranker import PairRanker
from gbmrank.estimators.probability_map import level_path


def load(path: str | os.PathLike[str], *, verify: bool = True) -> Any:
    """Read a ranker that ``save`` of GBMRanker, PairRanker or LowRankRanker wrote.

    The file is LightGBM's text or XGBoost's JSON or UBJSON, or a zip archive of these and tables
    for a LowRankRanker; nothing in it is executed.

    Parameters
    ----------
    path : str or path
        The file.
    verify : bool, default=True
        Reject a file that changed since ``save`` wrote it. False passes the file to
        the booster unchecked, for one that was edited on purpose; a damaged file may crash it.

    Returns
    -------
    GBMRanker, PairRanker or LowRankRanker
        Its predictions are those of the saved one; ``evals_result_`` is empty.

    Warns
    -----
    GbmrankWarning
        When the ranker was made with preferences, which are not saved: ``score`` and ``fit`` of
        the loaded ranker use labels.

    Raises
    ------
    DataError
        When the file is not a model, is damaged, or was not saved by this gbmrank or an older
        one.
    """
    archive = Archive.read(Path(path), verify)
    if archive is not None:
        several = GoalRanker if archive.identity.ranker == "GoalRanker" else LowRankRanker
        return several.from_file(archive)
    fitted, text = read_model(Path(path), verify)
    if text is None:
        raise DataError(
            f"{path} is a model of {fitted.backend} that gbmrank did not save, so its objective "
            f"and metric are unknown; read it with {fitted.backend}.Booster"
        )
    identity = Identity.from_text(text, str(path))
    if identity.ranker:
        return PairRanker.from_file(fitted, identity)
    if identity.preferences:
        warn(
            f"{path} was trained or evaluated with preferences, which are not in model files. "
            "Predictions are the same, but fit and score would use labels; before calling them, "
            "set objective= and metric= made with preferences=",
            GbmrankWarning,
        )
    model = GBMRanker(identity.objective, identity.backend, identity.metric, **identity.params)
    model._hold(fitted, identity, {})
    if identity.calibration is not None and (beside := level_path(path)).is_file():
        model._level = load(beside, verify=verify)
    return model
