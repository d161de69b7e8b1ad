"""Ellipsoids: each cut keeps all points beyond it, and no ellipsoid that does is smaller."""

import numpy as np
import pytest

from gbmrank.theory.minimise import _cut


@pytest.mark.parametrize("depth", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_a_cut_ellipsoid_holds_what_is_beyond_the_cut_and_touches_it(d, depth):
    rng = np.random.default_rng(d)
    centre, root = rng.normal(size=d), np.eye(d) + 0.3 * rng.normal(size=(d, d))
    unit = rng.normal(size=d)
    unit /= np.linalg.norm(unit)
    ball = rng.normal(size=(400, d))
    ball /= np.maximum(np.linalg.norm(ball, axis=1, keepdims=True), 1.0)
    across = rng.normal(size=(20, d))
    across -= np.outer(across @ unit, unit)
    across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)
    rim = np.sqrt(1.0 - depth**2) * across * (d > 1) - depth * unit
    touched = np.concatenate([-unit[None], rim])
    inside = ball[ball @ unit <= -depth]

    new_centre, new_root = _cut(centre, root, unit, depth)

    def radii(points):
        return np.linalg.norm(
            np.linalg.solve(new_root, (centre + points @ root.T - new_centre).T), axis=0
        )

    assert np.all(radii(inside) <= 1.0 + 1e-9)
    assert radii(touched) == pytest.approx(1.0, rel=1e-9)
