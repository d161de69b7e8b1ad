"""XGBoost's network between tasks that train one model."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from gbmrank.boosters.base import Peers
from gbmrank.boosters.xgboost.dataset import import_xgboost


@contextlib.contextmanager
def network(peers: Peers) -> Iterator[dict[str, Any]]:
    """Connect this task with the others, and yield parameters of the training: none."""
    if peers.size == 1:
        yield {}
        return
    xgb, args = import_xgboost(), None
    if peers.rank == 0:
        from xgboost.tracker import RabitTracker

        tracker = RabitTracker(n_workers=peers.size, host_ip=peers.host, sortby="task")
        tracker.start()
        threading.Thread(target=tracker.wait_for, daemon=True).start()
        args = tracker.worker_args()
    known = peers.gather(args)[0]
    # Ranks are sorted by this text.
    with xgb.collective.CommunicatorContext(**known, dmlc_task_id=f"{peers.rank:08d}"):
        yield {}
