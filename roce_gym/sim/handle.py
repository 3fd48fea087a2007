"""The whole state as one pointer inside kernels.

A NamedTuple of forty arrays costs Numba some three hundred values at every call, which makes
compilation slow. So kernels get a *table*: an int64 array with address and length of every array
of :class:`State`, in the order of its fields. `state_of(table)` turns it into `s`, a single
pointer, and `s.link[i]["free_ps"]` reads as it would on the NamedTuple: a record's field for
structured arrays, a number for plain ones. Indices must be in range and not negative.

Without JIT there is no table: `state_of` returns the State it is given.
"""

from __future__ import annotations

import operator
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_getattr, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import (
    intrinsic,
    lower_builtin,
    models,
    register_model,
    type_callable,
)
from numba.np import numpy_support
from numpy.typing import NDArray

from roce_gym.sim.types import DTYPES, State

_FIELDS = tuple(DTYPES)
_WORD = ir.IntType(64)
_LINE_BYTES = 64
_WORD_BYTES = 8


class StateType(types.Type):
    """Numba type of `s`. `plain`: a constant that kernels read as `s.plain`, see `is_plain`."""

    def __init__(self, plain: bool) -> None:
        self.plain = plain
        super().__init__(name=f"roce_gym.State({'plain' if plain else 'full'})")


class ColumnType(types.Type):
    """Numba type of one array of the state; `dtype` is the type of its elements."""

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(name=f"roce_gym.Column({dtype})")


register_model(StateType)(models.OpaqueModel)


@register_model(ColumnType)
class _ColumnModel(models.StructModel):
    def __init__(self, dmm: Any, fe_type: ColumnType) -> None:
        super().__init__(dmm, fe_type, [("address", types.intp), ("size", types.intp)])


def packed(state: State) -> tuple[State, NDArray[np.int64]]:
    """A copy in one block of memory, in which every array begins with a cache line, and its table.

    So a record of 64 bytes is one line and not parts of two, and where the block is large, NumPy
    asks the system for huge pages, without which most far accesses also miss the TLB. The table is
    valid while the arrays live and are not replaced.
    """
    lines = [-(-array.nbytes // _LINE_BYTES) for array in state]
    block = np.empty((sum(lines) + 1) * _LINE_BYTES, np.uint8)
    address, everything = block.ctypes.data, block.data
    start = -address % _LINE_BYTES
    arrays, words = [], []
    for array, count in zip(state, lines, strict=True):
        if count:
            everything[start : start + array.nbytes] = array.view(np.uint8).data
        arrays.append(np.frombuffer(block, array.dtype, array.size, start))
        words += [address + start, array.size]
        start += count * _LINE_BYTES
    return State(*arrays), np.array(words, np.int64)


def _first_word(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.bitcast(array.data, cgutils.voidptr_t)


@intrinsic
def _full_state(_typing: Any, table: Any) -> Any:
    return StateType(plain=False)(table), _first_word


@intrinsic
def _plain_state(_typing: Any, table: Any) -> Any:
    return StateType(plain=True)(table), _first_word


@infer_getattr
class _StateAttribute(AttributeTemplate):
    key = StateType

    def generic_resolve(self, _state: Any, attr: str) -> Any:
        if attr == "plain":
            return types.boolean
        if attr in DTYPES:
            return ColumnType(numpy_support.from_dtype(DTYPES[attr]))
        return None


def _constant_word(builder: Any, words: Any, index: int) -> Any:
    """A word of the table, which no kernel writes: LLVM need not load it twice."""
    word = builder.load(builder.gep(words, [ir.Constant(_WORD, index)]))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


@lower_getattr_generic(StateType)
def _column(context: Any, builder: Any, state_type: Any, pointer: Any, attr: str) -> Any:
    if attr == "plain":
        return context.get_constant(types.boolean, state_type.plain)
    index = 2 * _FIELDS.index(attr)
    words = builder.bitcast(pointer, _WORD.as_pointer())
    column_type = ColumnType(numpy_support.from_dtype(DTYPES[attr]))
    column = cgutils.create_struct_proxy(column_type)(context, builder)
    column.address = _constant_word(builder, words, index)
    column.size = _constant_word(builder, words, index + 1)
    return column._getvalue()


@infer_getattr
class _ColumnAttribute(AttributeTemplate):
    key = ColumnType

    def resolve_size(self, _column: Any) -> Any:
        return types.int64


@lower_getattr(ColumnType, "size")
def _size(context: Any, builder: Any, column_type: Any, value: Any) -> Any:
    return cgutils.create_struct_proxy(column_type)(context, builder, value).size


@type_callable(operator.getitem)
def _type_getitem(_context: Any) -> Any:
    def typer(column: Any, index: Any) -> Any:
        if isinstance(column, ColumnType) and isinstance(index, types.Integer):
            return column.dtype
        return None

    return typer


@type_callable(operator.setitem)
def _type_setitem(_context: Any) -> Any:
    def typer(column: Any, index: Any, _value: Any) -> Any:
        if isinstance(column, ColumnType) and isinstance(index, types.Integer):
            return types.none
        return None

    return typer


def _element(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Pointer to an element."""
    column_type, index_type = signature.args[0], signature.args[1]
    column = cgutils.create_struct_proxy(column_type)(context, builder, args[0])
    index = context.cast(builder, args[1], index_type, types.int64)
    item_bytes = context.get_abi_sizeof(context.get_data_type(column_type.dtype))
    if isinstance(column_type.dtype, types.Record):
        item_bytes = column_type.dtype.size
    address = builder.add(column.address, builder.mul(index, ir.Constant(_WORD, item_bytes)))
    return builder.inttoptr(address, context.get_data_type(column_type.dtype).as_pointer())


@lower_builtin(operator.getitem, ColumnType, types.Integer)
def _get(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    pointer = _element(context, builder, signature, args)
    dtype = signature.args[0].dtype
    if isinstance(dtype, types.Record):
        return builder.bitcast(pointer, context.get_value_type(dtype))
    return context.unpack_value(builder, dtype, pointer)


@lower_builtin(operator.setitem, ColumnType, types.Integer, types.Any)
def _set(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    pointer = _element(context, builder, signature, args)
    dtype = signature.args[0].dtype
    value = context.cast(builder, args[2], signature.args[2], dtype)
    context.pack_value(builder, dtype, value, pointer)
    return context.get_dummy_value()


@intrinsic
def _prefetch_element(_typing: Any, column: Any, index: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.bitcast(_element(context, builder, signature, args), cgutils.voidptr_t)
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [pointer, word(1), word(3), word(1)])  # to write, keep, data
        return context.get_dummy_value()

    return types.none(column, index), codegen


def _record_in_words(dtype: np.dtype[Any]) -> Any:
    record = numpy_support.from_dtype(dtype)

    @intrinsic
    def at(_typing: Any, column: Any, index: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _element(context, builder, signature, args)
            return builder.bitcast(pointer, context.get_value_type(record))

        return record(column, index), codegen

    return at


def _record_in_array(dtype: np.dtype[Any]) -> Any:
    words = dtype.itemsize // _WORD_BYTES

    def at(column: Any, index: Any) -> Any:
        return column[index : index + words].view(dtype)[0]

    return at


if numba.config.DISABLE_JIT:

    def prefetch(column: Any, index: Any) -> None:
        """Nothing: a hint to the processor."""

    def state_of(state: Any) -> Any:
        """The State itself."""
        return state

    plain_state_of = state_of

    record_at = _record_in_array
    """For kernels: `record_at(dtype)(column, i)` is the record that begins at word i."""

else:
    prefetch = _prefetch_element
    record_at = _record_in_words
    state_of = _full_state
    plain_state_of = _plain_state
