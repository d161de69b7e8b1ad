"""A loss for gbmrank: one function of the margin by which the better item leads."""

from gbmrank.numerics import sigmoid, softplus

gbmrank_api = 1


def smooth_hinge(z: float, k: float = 2.0) -> tuple[float, float, float]:
    """log(1 + exp(k (1 - z))) / k: a hinge whose corner is rounded."""
    s = sigmoid(k * (1.0 - z))
    return softplus(k * (1.0 - z)) / k, -s, k * s * (1.0 - s)
