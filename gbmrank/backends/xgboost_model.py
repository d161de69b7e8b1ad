"""The file of an XGBoost model, checked before XGBoost reads it.

At a file that is cut XGBoost reads beyond its end, which can end the whole process.
"""

import json

__all__ = ["check_model"]

_SIZES = {b"i": 1, b"U": 1, b"I": 2, b"l": 4, b"L": 8, b"d": 4, b"D": 8, b"C": 1}
_SIZES |= dict.fromkeys((b"Z", b"T", b"F", b"N"), 0)
_WHOLE = (b"i", b"U", b"I", b"l", b"L")


def check_model(data: bytes) -> None:
    """Raise ValueError unless the bytes are one whole document, JSON or UBJSON.

    Parameters
    ----------
    data : bytes
        As ``xgboost.Booster.save_model`` writes them.
    """
    if data[1:2] in (b'"', b" ", b"\n", b"\r", b"\t"):
        json.loads(data)
    elif _Document(data).value() != len(data):
        raise ValueError("it goes on after its end")


class _Document:
    """Walks over UBJSON without keeping anything."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def value(self, marker: bytes | None = None) -> int:
        """Pass a value; return where it ends."""
        marker = self._take(1) if marker is None else marker
        if marker in (b"{", b"["):
            self._many(named=marker == b"{", close=b"}" if marker == b"{" else b"]")
        elif marker in (b"S", b"H"):
            self._take(self._count())
        elif marker in _SIZES:
            self._take(_SIZES[marker])
        else:
            raise ValueError(f"byte {self._at} holds what is no value")
        return self._at

    def _many(self, named: bool, close: bytes) -> None:
        kind = self._take(2)[1:] if self._next() == b"$" else None
        if self._next() == b"#":
            self._take(1)
            count = self._count()
            if kind is not None and kind in _SIZES and not named:
                self._take(count * _SIZES[kind])
                return
            for _ in range(count):
                self._entry(named, kind)
            return
        while self._next() != close:
            self._entry(named, kind)
        self._take(1)

    def _entry(self, named: bool, kind: bytes | None) -> None:
        if named:
            self._take(self._count())
        self.value(kind)

    def _count(self) -> int:
        marker = self._take(1)
        if marker not in _WHOLE:
            raise ValueError(f"byte {self._at} holds what is no length")
        return int.from_bytes(self._take(_SIZES[marker]), "big", signed=marker != b"U")

    def _next(self) -> bytes:
        return self._data[self._at : self._at + 1]

    def _take(self, count: int) -> bytes:
        if not 0 <= count <= len(self._data) - self._at:
            raise ValueError("its end is missing")
        self._at += count
        return self._data[self._at - count : self._at]
