"""Decoders: turn the pair values that a pair model predicts into rankings."""

from gbmrank.kernels.decode.orders import (
    DECODERS,
    diagonal,
    exact_disagreement,
    exact_map,
    graph_order,
    greedy_map,
    map_value,
    orders,
)

__all__ = [
    "DECODERS",
    "diagonal",
    "exact_disagreement",
    "exact_map",
    "graph_order",
    "greedy_map",
    "map_value",
    "orders",
]
