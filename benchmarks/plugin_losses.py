"""Losses as a plugin writes them: plain functions with the numerics that gbmrank offers."""

import gbmrank
from gbmrank.numerics import exp, log1p_unit, sigmoid, softplus


def plugin_logistic(z: float, sigma: float = 1.0) -> tuple[float, float, float]:
    """The same loss as the built-in logistic, without its hand-written kernels."""
    e = exp(-sigma * abs(z))  # of z and -z the compiler computes it once
    r = 1.0 / (1.0 + e)
    p = (e if z > 0.0 else 1.0) * r
    value = sigma * max(-z, 0.0) + log1p_unit(e)
    return value, -sigma * p, (sigma * e * r) * (sigma * r)


def plugin_hinge(z: float, k: float = 2.0) -> tuple[float, float, float]:
    """A rounded hinge, which is not symmetric: two exponentials per pair in place of one."""
    s = sigmoid(k * (1.0 - z))
    return softplus(k * (1.0 - z)) / k, -s, k * s * (1.0 - s)


def register() -> None:
    """Make both known to gbmrank."""
    gbmrank.register_loss(plugin_logistic)
    gbmrank.register_loss(plugin_hinge)
