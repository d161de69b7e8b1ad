"""LightGBM's network between tasks that train one model."""

import contextlib
import secrets
import socket
from collections.abc import Iterator
from typing import Any

import numpy as np

from gbmrank.boosters.base import Peers
from gbmrank.boosters.lightgbm.dataset import import_lightgbm
from gbmrank.errors import ConfigError

OF_NETWORK = ("tree_learner", "pre_partition", "num_machines", "machines", "local_listen_port")


@contextlib.contextmanager
def network(peers: Peers) -> Iterator[dict[str, Any]]:
    """Choose a port for this task, and yield the parameters with which LightGBM connects."""
    if peers.size == 1:
        yield {}
        return
    idle = _idle()  # made before: its rows would be binned with those of the others
    machines: list[str] = []
    while len(set(machines)) < peers.size:  # tasks of one host may find the same port
        port = _free_port()
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
        idle.free_network()


def _free_port() -> int:
    """Return a port below those that systems give to connections, which could take it first."""
    for port in secrets.SystemRandom().sample(range(15_000, 32_000), 100):
        with contextlib.suppress(OSError), socket.socket() as tried:
            tried.bind(("", port))
            return port
    raise ConfigError("LightGBM needs a free port between 15,000 and 32,000 on every machine")


def free_network() -> None:
    """Close the connections that a training left behind."""
    _idle().free_network()


def _idle() -> Any:
    lgb = import_lightgbm()
    empty = lgb.Dataset(np.zeros((2, 1)), np.zeros(2), params={"verbose": -1})
    return lgb.Booster({"verbose": -1, "num_machines": 1}, empty)
