"""Curves of a loss: as text for the terminal, as a picture for a file."""

from collections.abc import Sequence

import numpy as np

from gbmrank.errors import MissingPackageError, ParameterError
from gbmrank.losses.base import ScalarFunction
from gbmrank.types import FloatArray

__all__ = ["draw", "sampled", "save"]

Curve = tuple[str, FloatArray]
_MARKS = "*'."
_COLUMNS, _ROWS = 61, 15
_NAMES = ("value", "slope", "curvature")


def sampled(function: ScalarFunction, params: tuple[float, ...], points: FloatArray) -> list[Curve]:
    """Return value, slope and curvature at these margins."""
    rows = np.array([function(float(z), *params) for z in points])
    return [(name, rows[:, i]) for i, name in enumerate(_NAMES)]


def draw(points: FloatArray, curves: Sequence[Curve]) -> str:
    """Return a plot made of characters; the scale is cut at the 2nd and 98th percentile.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 61)
    >>> print(draw(x, [("value", x)]).splitlines()[0].strip())
    0.96 |                                                         ****
    """
    everything = np.concatenate([values for _, values in curves])
    low, high = np.percentile(everything, [2, 98])
    low, high = (low, high) if high > low else (low - 1.0, high + 1.0)
    canvas = [[" "] * _COLUMNS for _ in range(_ROWS)]
    columns = np.round(np.linspace(0, _COLUMNS - 1, len(points))).astype(int)
    for mark, (_, values) in reversed(list(zip(_MARKS, curves, strict=False))):
        heights = (np.clip(values, low, high) - low) / (high - low) * (_ROWS - 1)
        for column, height in zip(columns, np.round(heights).astype(int), strict=True):
            canvas[_ROWS - 1 - height][column] = mark
    sides = [f"{high:.3g}", *[""] * (_ROWS - 2), f"{low:.3g}"]
    width = max(map(len, sides))
    lines = [
        f"{side:>{width}} |{''.join(row)}".rstrip() for side, row in zip(sides, canvas, strict=True)
    ]
    left, right = f"{points[0]:g}", f"{points[-1]:g}"
    axis = f"{'':>{width}} +{'-' * _COLUMNS}"
    scale = f"{'':>{width}}  {left}{right:>{_COLUMNS - len(left)}}"
    legend = "  ".join(f"{m} {name}" for m, (name, _) in zip(_MARKS, curves, strict=False))
    return "\n".join([*lines, axis, scale, f"{'':>{width}}  {legend}"])


def save(
    path: str, title: str, points: FloatArray, panels: Sequence[tuple[str, list[Curve]]]
) -> None:
    """Write a picture; its ending (.png, .svg, .pdf) decides the format."""
    if not path.lower().endswith((".png", ".svg", ".pdf")):
        raise ParameterError(f"--plot takes a file that ends in .png, .svg or .pdf, got {path!r}")
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingPackageError(
            "pictures need matplotlib: pip install 'gbmrank[report]'"
        ) from error
    mpl.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5 * len(panels), 3.2), layout="constrained")
    for index, (name, curves) in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), index + 1)
        for label, values in curves:
            axes.plot(points, values, label=label)
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("score or margin")
        axes.legend(fontsize=8)
    figure.suptitle(title, fontsize=10)
    figure.savefig(path)
