"""The registry of losses, objectives, metrics and utilities, and their text form."""

from gbmrank.registry.catalogue import (
    GENERATORS,
    LOSSES,
    METRICS,
    OBJECTIVES,
    OUTERS,
    REGULARISERS,
    UTILITIES,
    Registry,
)
from gbmrank.registry.entry_points import Entry, Origin, Status

__all__ = [
    "GENERATORS",
    "LOSSES",
    "METRICS",
    "OBJECTIVES",
    "OUTERS",
    "REGULARISERS",
    "UTILITIES",
    "Entry",
    "Origin",
    "Registry",
    "Status",
]
