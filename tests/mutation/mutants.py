"""Small wrong changes to a module, one at a time, found in its syntax tree."""

import ast
import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["Mutant", "functions_of", "mutants_of"]

_ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
_COMPARISON = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_SWAPPED = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "zeros": "ones",
    "ones": "zeros",
}


class Mutant(NamedTuple):
    """A change of one place of a module.

    ``function`` is the outermost function or method (``Class.method``) and ``text`` the line of
    the source without indentation, after the line before it where it is a single word: together
    they find the place when lines have moved.
    """

    function: str
    text: str
    line: int
    kind: str
    before: str
    after: str
    source: str


def mutants_of(source: str) -> list[Mutant]:
    """Return every mutant of a module: of statements inside functions, error texts left out."""
    found: list[Mutant] = []
    for name, function in functions_of(source).items():
        for statement in function.body:
            found += [_applied(name, *change, source) for change in _inside(statement)]
    return found


def functions_of(source: str) -> dict[str, ast.FunctionDef]:
    """Return the outermost functions and methods of a module, by name as ``Class.method``."""
    found: dict[str, ast.FunctionDef] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            found |= {f"{node.name}.{each.name}": each for each in methods}
    return found


def _inside(node: ast.AST) -> Iterator[tuple[Any, str, ast.AST]]:
    """Yield a place, the kind of change, and what it becomes."""
    if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    for kind, changed in _changes(node):
        yield node, kind, changed
    for name, child in ast.iter_fields(node):
        if name in ("annotation", "returns", "args", "decorator_list") and not isinstance(
            node, ast.Call
        ):
            continue
        for each in child if isinstance(child, list) else [child]:
            if isinstance(each, ast.AST):
                yield from _inside(each)


def _changes(node: ast.AST) -> Iterator[tuple[str, Any]]:
    if isinstance(node, ast.expr):
        yield from _expression_changes(node)
    elif isinstance(node, ast.AugAssign):
        if type(node.op) in _ARITHMETIC:
            yield "arithmetic", _with(node, op=_ARITHMETIC[type(node.op)]())
        yield "removed", ast.Pass()
    elif isinstance(node, ast.Expr | ast.Continue | ast.Break) or _writes_an_item(node):
        yield "removed", ast.Pass()


def _writes_an_item(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)


def _expression_changes(node: ast.expr) -> Iterator[tuple[str, Any]]:
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        yield "arithmetic", _with(node, op=_ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.Compare):
        for other in _COMPARISON[type(node.ops[0])]:
            yield "comparison", _with(node, ops=[other(), *node.ops[1:]])
    elif isinstance(node, ast.BoolOp):
        yield "logic", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "sign" if isinstance(node.op, ast.USub) else "logic", node.operand
    elif isinstance(node, ast.Name) and node.id in _SWAPPED:
        yield "swap", _with(node, id=_SWAPPED[node.id])
    elif isinstance(node, ast.Attribute) and node.attr in _SWAPPED:
        yield "swap", _with(node, attr=_SWAPPED[node.attr])
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield "constant", ast.Constant(_other_number(node.value))


def _other_number(value: float) -> float:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return 2.0 * value if value else 1.0


def _with(node: Any, **fields: Any) -> Any:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _applied(function: str, node: Any, kind: str, changed: ast.AST, source: str) -> Mutant:
    lines = source.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    raw = source.encode()
    text = ast.unparse(changed)
    wrapped = f"({text})" if isinstance(node, ast.BinOp | ast.Compare | ast.BoolOp) else text
    after = raw[:start] + wrapped.encode() + raw[end:]
    line = lines[node.lineno - 1].decode().strip()
    if " " not in line:  # "continue" alone says nothing
        line = f"{lines[node.lineno - 2].decode().strip()} {line}"
    return Mutant(function, line, node.lineno, kind, ast.unparse(node), text, after.decode())
