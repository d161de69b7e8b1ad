"""What an installed gbmrank must do; ``make dist`` runs it in an empty environment."""

import subprocess
import sys
from pathlib import Path

import gbmrank
from gbmrank.demo_data import demo_data


def main() -> None:
    """Train with both boosters, load every plugin's objectives, and call the command line."""
    assert "site-packages" in str(Path(gbmrank.__file__)), gbmrank.__file__
    assert (Path(gbmrank.__file__).parent / "py.typed").exists()
    train, valid = demo_data(60, seed=0), demo_data(30, seed=1)
    for backend in ("lightgbm", "xgboost"):
        model = gbmrank.GBMRanker("pairwise(target=dcg@10)", backend=backend, n_estimators=10)
        scores = model.fit(train.X, train.labels, qid=train.qid).predict(valid.X)
        value = gbmrank.metric("ndcg@10").score(valid.labels, scores, qid=valid.qid)
        assert 0.3 < value < 1.0, (backend, value)
    subprocess.run([sys.executable, "-m", "gbmrank", "plugins", "doctor"], check=True)
    print("gbmrank", gbmrank.__version__, "works as installed")


if __name__ == "__main__":
    main()
