"""Importing gbmrank is cheap and brings in nothing optional."""

import gbmrank
from tests.ranking_tasks import run_python

HEAVY = (
    "numba, lightgbm, xgboost, matplotlib, sklearn, pandas, polars, pyarrow, narwhals, dask, scipy"
)


def test_importing_imports_no_booster_compiler_or_frame():
    loaded = run_python(
        f"import sys, gbmrank; print(sorted(set('{HEAVY}'.split(', ')) & set(sys.modules)))"
    )
    assert loaded == "[]"


def test_making_objects_and_listing_needs_no_compiler_or_booster():
    loaded = run_python(
        "import sys, gbmrank; gbmrank.objective('pairwise', target='ndcg@10'); "
        "gbmrank.metric('ndcg@1,5'); gbmrank.list_losses(); "
        "gbmrank.booster_params('pairwise', 'xgboost'); "
        "print(sorted({'numba', 'lightgbm', 'xgboost'} & set(sys.modules)))"
    )
    assert loaded == "[]"


def test_everything_public_is_there_and_nothing_else():
    assert len(gbmrank.__all__) == len(set(gbmrank.__all__))
    missing = [name for name in gbmrank.__all__ if not hasattr(gbmrank, name)]
    assert missing == []
    names = run_python("import gbmrank; print(' '.join(n for n in dir(gbmrank)))").split()
    modules = set(
        run_python(
            "import gbmrank, types; print(' '.join(n for n, v in vars(gbmrank).items() "
            "if isinstance(v, types.ModuleType)))"
        ).split()
    )
    public = {name for name in names if not name.startswith("_")} - modules
    later = {
        "DaskGBMRanker",
        "plots",
        "clicks",
        "dask",
        "spark",
        "testing",
        "theory",
    }  # which a star import does not bring
    assert public - later == set(gbmrank.__all__)


def test_rankers_are_found_and_not_imported_before():
    told = run_python(
        "import sys, gbmrank; before = 'gbmrank.estimators' in sys.modules; "
        "print(before, gbmrank.GBMRanker.__name__, gbmrank.load.__name__, 'load' in dir(gbmrank))"
    )
    assert told == "False GBMRanker load True"


def test_the_kit_is_found_and_not_imported_before():
    told = run_python(
        "import sys, gbmrank; before = 'gbmrank.testing' in sys.modules; "
        "print(before, gbmrank.testing.check_loss.__name__, 'testing' in dir(gbmrank))"
    )
    assert told == "False check_loss True"


def test_plots_are_importable_by_every_spelling():
    told = run_python(
        "import sys, gbmrank.plots; early = 'gbmrank.metrics.plots' in sys.modules; "
        "from gbmrank.plots import reliability; from gbmrank import plots; "
        "print(early, reliability is plots.reliability)"
    )
    assert told == "False True"


def test_importing_starts_no_thread():
    code = "import threading, gbmrank; print(threading.active_count())"
    assert run_python(code) == "1"
