"""HALF as a type of Numba: 16 bits in memory and in registers, each operation done in float32 and rounded once."""

from numba.core import types
from numba.core.datamodel import models, register_default
from numba.core.typeconv import Conversion

from popcore.kernels.operation import F16, F32, lowering_registry


class Half(types.Number):
    """IEEE binary16. It unifies with nothing: a variable is HALF or it is not."""

    bitwidth = 16

    def __init__(self) -> None:
        super().__init__("half")

    def can_convert_to(self, typingctx, other):
        return Conversion.safe if other == types.boolean else None


half = Half()


@register_default(Half)
class HalfModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, F16)


@lowering_registry.lower_cast(Half, types.Boolean)
def _half_to_bool(context, builder, fromty, toty, value):
    return builder.fcmp_unordered("!=", value, F16(0.0))


@lowering_registry.lower_constant(Half)
def _half_constant(context, builder, ty, value):
    return F16(float(value))


def widen(builder, value):
    """The float32 of a half: exact."""
    return builder.fpext(value, F32)


def narrow(builder, value):
    """The half nearest to a float32, ties to even."""
    return builder.fptrunc(value, F16)
