"""Single numbers that theory and decoders are given."""

from fractions import Fraction

import numpy as np
import pytest

from gbmrank.data.columns import read_number
from gbmrank.errors import ParameterError


@pytest.mark.parametrize(
    "value", [0.5, np.float16(0.5), np.float32(0.5), np.longdouble(0.5), Fraction(1, 2)]
)
def test_numbers_of_any_length_are_read(value):
    assert read_number(value, "rate", 0) == 0.5


@pytest.mark.parametrize(
    "value",
    [np.float32("inf"), np.float16("nan"), np.complex64(1), 1j, True, np.True_, "1", None],
)
def test_what_is_no_finite_number_is_rejected(value):
    with pytest.raises(ParameterError, match="rate must be a finite number from 0, got"):
        read_number(value, "rate", 0)
