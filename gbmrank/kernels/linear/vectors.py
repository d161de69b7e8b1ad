"""Three inner steps of the linear-time engine, written with vector instructions.

Their loops are as short as the number of Chebyshev nodes. The compiler unrolls such
loops before it looks for vectors and then leaves them scalar, three to five times
slower; so the vector operations are spelled out. All work on C-contiguous float64
arrays, addressed by the offset of an element.
"""

# ruff: noqa: ARG001  (the compiler calls intrinsics with the types of all arguments)

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from gbmrank.kernels.linear.interpolation import ORDER

_LANES = 4  # divides ORDER
_SCALAR = ir.DoubleType()
_VECTOR = ir.VectorType(_SCALAR, _LANES)
_ALIGNMENT = 8  # of a float64: rows may start anywhere


class _Emitter:
    """Writes vector operations into the function that is being compiled."""

    def __init__(self, context: Any, builder: Any) -> None:
        self._context = context
        self.builder = builder
        name, signature = "llvm.fmuladd.v4f64", ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        self._fmuladd = builder.module.declare_intrinsic(name, fnty=signature)

    def pointer(self, array_type: Any, array: Any, offset: Any) -> Any:
        data = self._context.make_array(array_type)(self._context, self.builder, array).data
        return self.builder.gep(data, [offset])

    def _at(self, pointer: Any, index: int) -> Any:
        return self.builder.gep(pointer, [ir.Constant(ir.IntType(64), index)])

    def load(self, pointer: Any, index: int) -> Any:
        place = self.builder.bitcast(self._at(pointer, index), ir.PointerType(_VECTOR))
        return self.builder.load(place, align=_ALIGNMENT)

    def load_scalar(self, pointer: Any, index: int) -> Any:
        return self.builder.load(self._at(pointer, index))

    def store(self, vector: Any, pointer: Any, index: int) -> None:
        place = self.builder.bitcast(self._at(pointer, index), ir.PointerType(_VECTOR))
        self.builder.store(vector, place, align=_ALIGNMENT)

    def join(self, *scalars: Any) -> Any:
        vector = ir.Constant(_VECTOR, ir.Undefined)
        for lane, scalar in enumerate(scalars):
            vector = self.builder.insert_element(vector, scalar, ir.Constant(ir.IntType(32), lane))
        return vector

    def repeat(self, scalar: Any) -> Any:
        return self.join(*[scalar] * _LANES)

    def lane(self, vector: Any, lane: int) -> Any:
        return self.builder.extract_element(vector, ir.Constant(ir.IntType(32), lane))

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        return self.builder.call(self._fmuladd, [a, b, c])


def _is_array(kind: Any) -> bool:
    return isinstance(kind, types.Array) and kind.layout == "C" and kind.dtype == types.float64


@intrinsic  # type: ignore[untyped-decorator]
def evaluate_four(typingctx: Any, powers: Any, offset: Any, place: Any) -> Any:
    """Evaluate four polynomials at one place; coefficients of a power together, lowest first."""
    if not _is_array(powers):
        return None

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emitter(context, builder)
        row = emit.pointer(signature.args[0], args[0], args[1])
        where = emit.repeat(args[2])
        total = emit.load(row, _LANES * (ORDER - 1))
        for power in range(ORDER - 2, -1, -1):
            total = emit.multiply_add(total, where, emit.load(row, _LANES * power))
        lanes = [emit.lane(total, lane) for lane in range(_LANES)]
        return context.make_tuple(builder, signature.return_type, lanes)

    return types.UniTuple(types.float64, _LANES)(powers, types.int64, types.float64), build


@intrinsic  # type: ignore[untyped-decorator]
def add_chebyshev(typingctx: Any, moments: Any, offset: Any, weight: Any, place: Any) -> Any:
    """Add ``weight * T_m(place)``, m below ``ORDER``, by ``T_(m+4) = 2 T_4 T_m - T_(m-4)``."""
    if not _is_array(moments):
        return None

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emitter(context, builder)
        row = emit.pointer(signature.args[0], args[0], args[1])
        one, two = ir.Constant(_SCALAR, 1.0), ir.Constant(_SCALAR, 2.0)
        t1 = args[3]
        twice = builder.fmul(two, t1)
        t2 = builder.fsub(builder.fmul(twice, t1), one)
        t3 = builder.fsub(builder.fmul(twice, t2), t1)
        t4 = builder.fsub(builder.fmul(builder.fmul(two, t2), t2), one)
        step = emit.repeat(builder.fmul(two, t4))
        weights = emit.repeat(args[2])
        older, newer = emit.join(t4, t3, t2, t1), emit.join(one, t1, t2, t3)
        for m in range(0, ORDER, _LANES):
            emit.store(emit.multiply_add(weights, newer, emit.load(row, m)), row, m)
            older, newer = newer, emit.multiply_add(step, newer, builder.fneg(older))
        return context.get_dummy_value()

    return types.void(moments, types.int64, types.float64, types.float64), build


@intrinsic  # type: ignore[untyped-decorator]
def add_product(typingctx: Any, matrix: Any, start: Any, row: Any, out: Any) -> Any:
    """Add the product of a row and a square matrix to a row; rows are (array, offset)."""
    if not (_is_array(matrix) and _is_array(row[0]) and _is_array(out[0])):
        return None

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emitter(context, builder)
        pointers = [emit.pointer(signature.args[0], args[0], args[1])]
        for kind, pair in zip(signature.args[2:], args[2:], strict=True):
            array, offset = (builder.extract_value(pair, i) for i in range(2))
            pointers.append(emit.pointer(kind[0], array, offset))
        matrix_at, row_at, out_at = pointers
        totals = [emit.load(out_at, m) for m in range(0, ORDER, _LANES)]
        for k in range(ORDER):
            factor = emit.repeat(emit.load_scalar(row_at, k))
            for part, total in enumerate(totals):
                entries = emit.load(matrix_at, ORDER * k + _LANES * part)
                totals[part] = emit.multiply_add(factor, entries, total)
        for part, total in enumerate(totals):
            emit.store(total, out_at, _LANES * part)
        return context.get_dummy_value()

    return types.void(matrix, types.int64, row, out), build
