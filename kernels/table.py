"""Tables of numbers from outside a codelet, frozen: a read-only vector that stands beside the code."""

import llvmlite.ir as ir
from numba.core import cgutils
from numba.core.typing.typeof import typeof_impl

from popcore.kernels.operation import I64, POINTER, lowering_registry
from popcore.kernels.selftype import VectorType, made
from popcore.kernels.values import STORED

_CODES = {"float32": "float", "float16": "half", "int64": "i64", "uint64": "u64", "bool": "bool"}


class Table:
    """Wraps an array so that Numba takes it for a vector of the dialect."""

    def __init__(self, array):
        self.array = array
        self.code = _CODES[array.dtype.name]


@typeof_impl.register(Table)
def _typeof_table(value, context):
    return VectorType(value.code, False, None)


@lowering_registry.lower_constant(VectorType)
def _table_constant(context, builder, ty, value):
    stored = STORED[ty.code]
    data = ir.Constant(ir.ArrayType(stored, len(value.array)), [stored(v) for v in value.array.tolist()])
    variable = cgutils.global_constant(builder, builder.module.get_unique_name("popcore.table"), data)
    return made(context, builder, ty, data=builder.bitcast(variable, POINTER), count=I64(len(value.array)))
