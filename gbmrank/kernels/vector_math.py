"""Branch-free twins of :mod:`gbmrank.numerics` for compiled loops.

``exp`` reduces its argument to ``k log 2 + r`` with ``|r| <= log(2)/2``, sums the polynomial
of degree 11 that is nearest to ``exp(r)`` there (error 1.3e-17) and adds ``k`` to the exponent
bits; ``log1p_unit`` sums
the series of ``2 artanh(x / (2 + x))``. Both are accurate to a few units in the last
place, and contain nothing that keeps a loop around them from being vectorised.
"""

from typing import Any

from numba import types
from numba.extending import intrinsic, overload

from gbmrank import numerics
from gbmrank.kernels.jit import exact_inner

__all__ = ["exp", "log1p_unit"]

_LOG2_E = 1.4426950408889634
_LOG_2_HIGH = 0.693147180369123816490
_LOG_2_LOW = 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer in the low bits


@intrinsic  # type: ignore[untyped-decorator]
def _scale_by_power(typingctx: Any, value: Any, shifted: Any) -> Any:
    """``value * 2**k`` where ``shifted`` is ``k + _ROUND``: adds k to the exponent bits."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        int64 = context.get_value_type(types.int64)
        bits = builder.bitcast(args[0], int64)
        power = builder.shl(builder.bitcast(args[1], int64), int64(52))
        return builder.bitcast(builder.add(bits, power), context.get_value_type(types.float64))

    return types.float64(types.float64, types.float64), build


@exact_inner
def exp(x: float) -> float:
    """Exponential of x clipped to plus or minus 700."""
    x = min(max(x, -700.0), 700.0)
    shifted = x * _LOG2_E + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    p = 2.51003767988125e-08
    p = p * r + 2.762007713646922e-07
    p = p * r + 2.7557268478279004e-06
    p = p * r + 2.480152131972762e-05
    p = p * r + 0.00019841269863041851
    p = p * r + 0.0013888888917198419
    p = p * r + 0.008333333333330065
    p = p * r + 0.04166666666662416
    p = p * r + 0.16666666666666669
    p = p * r + 0.5000000000000001
    p = p * r * r + r
    return _scale_by_power(1.0 + p, shifted)


@exact_inner
def log1p_unit(x: float) -> float:
    """Logarithm of 1 + x for x in [0, 1]."""
    y = x / (2.0 + x)
    z = y * y
    p = 1.0 / 33.0
    p = p * z + 1.0 / 31.0
    p = p * z + 1.0 / 29.0
    p = p * z + 1.0 / 27.0
    p = p * z + 1.0 / 25.0
    p = p * z + 1.0 / 23.0
    p = p * z + 1.0 / 21.0
    p = p * z + 1.0 / 19.0
    p = p * z + 1.0 / 17.0
    p = p * z + 1.0 / 15.0
    p = p * z + 1.0 / 13.0
    p = p * z + 1.0 / 11.0
    p = p * z + 1.0 / 9.0
    p = p * z + 1.0 / 7.0
    p = p * z + 1.0 / 5.0
    p = p * z + 1.0 / 3.0
    return 2.0 * (y + y * z * p)


@exact_inner
def _sigmoid(x: float) -> float:
    e = exp(-abs(x))
    return (1.0 if x >= 0.0 else e) / (1.0 + e)


@exact_inner
def _softplus(x: float) -> float:
    return max(x, 0.0) + log1p_unit(exp(-abs(x)))


@overload(numerics.exp, strict=False)  # type: ignore[untyped-decorator]
def _exp_in_kernels(x: Any) -> Any:
    return lambda x: exp(x)  # noqa: PLW0108  (the compiler wants a function of x)


@overload(numerics.log1p_unit, strict=False)  # type: ignore[untyped-decorator]
def _log1p_in_kernels(x: Any) -> Any:
    return lambda x: log1p_unit(x)  # noqa: PLW0108  (the compiler wants a function of x)


@overload(numerics.sigmoid, strict=False)  # type: ignore[untyped-decorator]
def _sigmoid_in_kernels(x: Any) -> Any:
    return lambda x: _sigmoid(x)  # noqa: PLW0108  (the compiler wants a function of x)


@overload(numerics.softplus, strict=False)  # type: ignore[untyped-decorator]
def _softplus_in_kernels(x: Any) -> Any:
    return lambda x: _softplus(x)  # noqa: PLW0108  (the compiler wants a function of x)
