"""Array aliases used in every signature, and the check for whole numbers."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["ArrayLike", "BoolArray", "FloatArray", "IntArray", "is_whole"]

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# One column: numpy array, list, pandas or polars Series, pyarrow Array or ChunkedArray.
# ``Any`` because the data-frame packages are optional and share no static base.
ArrayLike: TypeAlias = npt.NDArray[Any] | Sequence[float] | Sequence[int] | Sequence[str] | Any


def is_whole(value: object) -> bool:
    """Whether this is an integer; booleans do not count.

    Examples
    --------
    >>> is_whole(2), is_whole(np.int32(2)), is_whole(2.0), is_whole(True)
    (True, True, False, False)
    """
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
