"""LightGBM's network between tasks that train one model."""

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import numpy as np

from gbmrank.boosters.base import Peers
from gbmrank.boosters.lightgbm.dataset import import_lightgbm

OF_NETWORK = ("tree_learner", "pre_partition", "num_machines", "machines", "local_listen_port")


@contextlib.contextmanager
def network(peers: Peers) -> Iterator[dict[str, Any]]:
    """Choose a port for this task, and yield the parameters with which LightGBM connects."""
    if peers.size == 1:
        yield {}
        return
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    machines = peers.gather(f"{peers.host}:{port}")
    try:
        yield {
            "tree_learner": "data",
            "pre_partition": True,
            "num_machines": peers.size,
            "machines": ",".join(machines),
            "local_listen_port": port,
        }
    finally:
        free_network()


def free_network() -> None:
    """Close the connections of a training, also of one that failed."""
    lgb = import_lightgbm()
    empty = lgb.Dataset(np.zeros((2, 1)), np.zeros(2), params={"verbose": -1})
    lgb.Booster({"verbose": -1, "num_machines": 1}, empty).free_network()
