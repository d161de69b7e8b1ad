"""Array aliases used in every signature."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["ArrayLike", "BoolArray", "FloatArray", "IntArray"]

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# One column: numpy array, list, pandas or polars Series, pyarrow Array or ChunkedArray.
# ``Any`` because the data-frame packages are optional and share no static base.
ArrayLike: TypeAlias = npt.NDArray[Any] | Sequence[float] | Sequence[int] | Sequence[str] | Any
