"""A channel between the tasks of one training, for a few small values per round."""

import contextlib
import json
import secrets
import socket
from collections.abc import Callable, Iterator
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, final

from gbmrank.errors import WorkerLostError


@final
class Channel:
    """Connects the tasks that have rows; the first of them relays.

    Attributes
    ----------
    rank, size : int
        Number of this task, from 0, and how many there are.
    host : str
        Address under which the other tasks reach this one.
    """

    def __init__(self, rank: int, hosts: list[str], links: "list[Connection[Any, Any]]") -> None:
        self.rank, self.size, self.host = rank, len(hosts), hosts[rank]
        self._links = links  # of the first task to all others, of another task to the first

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all tasks, in the order of their ranks."""
        if self.size == 1:
            return [value]
        try:
            if self.rank:
                self._links[0].send(value)
                return list(self._links[0].recv())
            found = [value, *(link.recv() for link in self._links)]
            for link in self._links:
                link.send(found)
            return found
        except (EOFError, OSError) as error:
            raise WorkerLostError(
                "another task of this training ended; see the error of that task"
            ) from error


@contextlib.contextmanager
def connected(
    has_rows: bool, host: str, exchange: Callable[[str], list[str]]
) -> Iterator[Channel | None]:
    """Connect the tasks that have rows; None in the other tasks.

    ``exchange`` sends a text to all tasks and returns those of all, in the order of the tasks.
    """
    with contextlib.ExitStack() as opened:
        address, key = socket.gethostbyname(host), secrets.token_bytes(16)
        door = opened.enter_context(Listener((address, 0), backlog=512, authkey=key))
        own = {"rows": has_rows, "address": door.address, "key": key.hex()}
        told = [json.loads(text) for text in exchange(json.dumps(own))]
        taking_part = [one for one in told if one["rows"]]
        if not has_rows:
            yield None
            return
        rank = taking_part.index(json.loads(json.dumps(own)))
        hosts = [one["address"][0] for one in taking_part]
        links: list[Connection[Any, Any]] = []
        if rank:
            first = taking_part[0]
            client = Client(tuple(first["address"]), authkey=bytes.fromhex(first["key"]))
            links.append(opened.enter_context(client))
            links[0].send(rank)
        else:
            arrived = [opened.enter_context(door.accept()) for _ in hosts[1:]]
            links = [link for _, link in sorted((link.recv(), link) for link in arrived)]
        yield Channel(rank, hosts, links)
