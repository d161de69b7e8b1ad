"""The text form of objectives, losses, metrics and utilities.

One grammar serves the Python API, the command line and the report::

    list    = spec ("," (spec | INTEGER))*          cut-offs may be listed: ndcg@1,5,10
    spec    = NAME [ "(" [ argument ("," argument)* ] ")" ] [ "@" INTEGER ]
    argument = [ key "=" ] value                    without a key only before all others
    value   = NUMBER | STRING | "true" | "false" | "none" | "[" [ value ("," value)* ] "]" | spec
    NAME    = a letter, then letters, digits, "_", "-", "." and ":" (for native:rank:ndcg)

A bare name as a value is the string itself; a name with arguments or a cut-off is a
nested :class:`Spec`. Arguments without a key are for sums such as ``mix(ranknet, softmax)``;
everything else takes only keywords. Parsing a printed spec returns an equal spec.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias, final

from gbmrank.errors import SpecError

Value: TypeAlias = "bool | int | float | str | Spec | tuple[Value, ...] | None"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]*")
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>[-+]?(?:[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?|inf|nan)(?![A-Za-z0-9_.:-]))
      | (?P<name>[A-Za-z][A-Za-z0-9_.:-]*)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<mark>[()\[\],=@])
    )""",
    re.VERBOSE,
)
_KEYWORDS: Mapping[str, bool | None] = {"true": True, "false": False, "none": None}
_MAX_DEPTH = 20


@final
@dataclass(frozen=True, slots=True)
class Spec:
    """A name with keyword parameters and an optional cut-off.

    Parameters
    ----------
    name : str
        Registered name; may carry a namespace, as in ``native:lambdarank``.
    params : tuple of (str, value) pairs
        Keyword parameters in the order they were written.
    k : int or None
        Cut-off after ``@``.
    args : tuple of values
        Arguments written without a key.

    Examples
    --------
    >>> str(Spec("pairwise", (("loss", "logistic"), ("target", Spec("ndcg", k=10)))))
    'pairwise(loss=logistic, target=ndcg@10)'
    """

    name: str
    params: tuple[tuple[str, Value], ...] = ()
    k: int | None = None
    args: tuple[Value, ...] = ()

    def __str__(self) -> str:
        pieces = [*map(format_value, self.args)]
        for key, value in self.params:
            pieces.append(f"{key}={format_value(value)}")
        inside = ", ".join(pieces)
        brackets = f"({inside})" if inside else ""
        return f"{self.name}{brackets}" + ("" if self.k is None else f"@{self.k}")


def format_value(value: Value) -> str:
    """Return the text that :func:`parse` converts back to this value.

    >>> format_value((1, 0.5, "a b", None))
    "[1, 0.5, 'a b', none]"
    """
    if value is None or isinstance(value, bool):
        return "none" if value is None else str(value).lower()
    if isinstance(value, str):
        plain = _NAME.fullmatch(value) and value.lower() not in {*_KEYWORDS, "inf", "nan"}
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        return value if plain else f"'{escaped}'"
    if isinstance(value, tuple):
        return "[" + ", ".join(format_value(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(float(value))  # numpy's floats print their type
    return str(value)


def parse(text: Any) -> Spec:
    """Parse one spec; the message of a SpecError marks the position of the problem.

    >>> parse("squared_hinge(t=2)")
    Spec(name='squared_hinge', params=(('t', 2),), k=None, args=())
    """
    if not isinstance(text, str):
        raise SpecError(f"a spec must be text such as 'ndcg@10', got {type(text).__name__}")
    return _parsed(text)


@lru_cache(256)
def _parsed(text: str) -> Spec:
    reader = _Reader(text, "pairwise(loss=logistic, target=ndcg@10)")
    spec = reader.spec()
    reader.expect_end()
    return spec


@lru_cache(256)
def parse_list(text: str) -> tuple[Spec, ...]:
    """Parse metrics separated by commas; a bare integer repeats the last name with that cut-off.

    >>> [str(spec) for spec in parse_list("ndcg@1,5, map")]
    ['ndcg@1', 'ndcg@5', 'map']
    """
    reader = _Reader(text, "ndcg@10")
    specs = [reader.spec()]
    while reader.accept(","):
        if reader.kind == "number" and specs[-1].k is not None:
            specs.append(replace(specs[-1], k=reader.cutoff()))
        else:
            specs.append(reader.spec())
    reader.expect_end()
    return tuple(specs)


class _Reader:
    """Recursive-descent parser with one token of look-ahead."""

    def __init__(self, text: str, example: str) -> None:
        self.text, self.end, self.start, self.depth = text, 0, 0, 0
        self.example = example
        self.kind, self.token = "", ""
        self.advance()

    def advance(self) -> None:
        rest = self.text[self.end :]
        if not rest.strip():
            self.start, self.kind, self.token = len(self.text), "end", ""
            return
        match = _TOKEN.match(self.text, self.end)
        if match is None or match.lastgroup is None:
            self.start = self.end + len(rest) - len(rest.lstrip())
            raise self.error("unexpected character")
        self.kind, self.token = match.lastgroup, match.group(match.lastgroup)
        self.start, self.end = match.start(match.lastgroup), match.end()

    def error(self, reason: str) -> SpecError:
        return SpecError(
            f"cannot read the spec: {reason}\n    {self.text}\n    {' ' * self.start}^\n"
            f"a spec is written name(key=value, ...)@k, for example {self.example}"
        )

    def accept(self, mark: str) -> bool:
        if self.kind == "mark" and self.token == mark:
            self.advance()
            return True
        return False

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            raise self.error(f"expected {mark!r}")

    def expect_end(self) -> None:
        if self.kind != "end":
            raise self.error("expected the end of the text")

    def take(self, kind: str, what: str) -> str:
        if self.kind != kind:
            raise self.error(f"expected {what}")
        token = self.token
        self.advance()
        return token

    def spec(self) -> Spec:
        name = self.take("name", "a name")
        params: dict[str, Value] = {}
        args: list[Value] = []
        if self.accept("("):
            while not self.accept(")"):
                if params or args:
                    self.expect(",")
                self.argument(args, params)
        k = self.cutoff() if self.accept("@") else None
        return Spec(name, tuple(params.items()), k, tuple(args))

    def argument(self, args: list[Value], params: dict[str, Value]) -> None:
        could_be_key = self.kind == "name"
        value = self.value()
        if could_be_key and isinstance(value, str) and self.accept("="):
            if value in params:
                raise self.error(f"the parameter {value!r} is given twice")
            params[value] = self.value()
        elif params:
            raise self.error("an argument without a key must come before those with one")
        else:
            args.append(value)

    def cutoff(self) -> int:
        value = self.number() if self.kind == "number" and self.token.isdigit() else 0
        if value < 1:
            raise self.error("the cut-off after '@' must be a whole number of at least 1")
        self.advance()
        return int(value)

    def number(self) -> int | float:
        try:
            return int(self.token)
        except ValueError:
            value = float(self.token)
        if math.isnan(value) or (math.isinf(value) and "inf" not in self.token):
            raise self.error("a parameter cannot have this number")
        return value

    def value(self) -> Value:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.error(f"values are nested more than {_MAX_DEPTH} deep")
        value = self._value()
        self.depth -= 1
        return value

    def _value(self) -> Value:
        if self.accept("["):
            items: list[Value] = []
            while not self.accept("]"):
                if items:
                    self.expect(",")
                items.append(self.value())
            return tuple(items)
        if self.kind == "number":
            number = self.number()
            self.advance()
            return number
        if self.kind == "string":
            text = self.take("string", "a string")[1:-1]
            return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else str(m[1]), text, flags=re.S)
        if self.kind == "name" and self.token.lower() in _KEYWORDS:
            return _KEYWORDS[self.take("name", "a keyword").lower()]
        if self.kind != "name":
            raise self.error("expected a value: a number, a name, a string or a list")
        spec = self.spec()
        return spec.name if spec == Spec(spec.name) else spec
