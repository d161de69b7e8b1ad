"""Pair losses that are robust to wrong labels, each one scalar function.

Labels of ranking data are often wrong: clicks are noisy, judges disagree. A convex loss pays
any price to order such a pair; the losses here do not. They are bounded, or nearly flat,
where a pair is hopelessly misordered, and therefore not convex.
"""

from gbmrank.numerics import exp, sigmoid, softplus

__all__ = ["focal", "generalised_cross_entropy", "smooth_ramp"]

gbmrank_api = 1


def generalised_cross_entropy(z: float, q: float = 0.7) -> tuple[float, float, float]:
    """(1 - p^q) / q with p = sigmoid(z): logistic as q -> 0, the bounded 1 - p at q = 1.

    References
    ----------
    Zhang and Sabuncu, "Generalized cross entropy loss for training deep neural networks with
    noisy labels", NeurIPS 2018, eq. 6.
    """
    t = sigmoid(-z)
    p_q = exp(-q * softplus(-z))
    return (1.0 - p_q) / q, -p_q * t, p_q * t * (1.0 - t - q * t)


def smooth_ramp(z: float, k: float = 4.0) -> tuple[float, float, float]:
    """The ramp min(max(1 - z, 0), 2) with both corners rounded to a width of 1/k.

    References
    ----------
    Collobert, Sinz, Weston and Bottou, "Trading convexity for scalability", ICML 2006, sec. 3.
    """
    upper, lower = sigmoid(k * (1.0 - z)), sigmoid(-k * (1.0 + z))
    value = (softplus(k * (1.0 - z)) - softplus(-k * (1.0 + z))) / k
    return value, lower - upper, k * (upper * (1.0 - upper) - lower * (1.0 - lower))


def focal(z: float, gamma: float = 2.0) -> tuple[float, float, float]:
    """-(1 - p)^gamma log p with p = sigmoid(z): pairs that are in order hardly count.

    References
    ----------
    Lin, Goyal, Girshick, He and Dollar, "Focal loss for dense object detection", ICCV 2017.
    """
    p, t, entropy = sigmoid(z), sigmoid(-z), softplus(-z)
    t_g = exp(-gamma * softplus(z))
    bend = gamma * (gamma * p * entropy - t * entropy + t) + (gamma + 1.0) * t
    return t_g * entropy, -t_g * (gamma * p * entropy + t), t_g * p * bend
