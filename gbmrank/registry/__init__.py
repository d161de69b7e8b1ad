"""What is registered under which name, and how text becomes objects."""

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
