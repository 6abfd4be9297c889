"""HALF as a type of Numba: 16 bits in memory and in registers, each operation done in float32 and rounded once.

How a float32 becomes a half depends on the arithmetic that is compiled for (``state.arithmetic``); what it means in words and
in Python is in ``popcore.dialect.rounding``. No rule has branches, so that loops become vectors.
"""

from numba.core import types
from numba.core.datamodel import models, register_default
from numba.core.typeconv import Conversion

from popcore.kernels import stochastic, traps
from popcore.kernels.behaviour import IEEE, LARGEST, NAN, OVERFLOWS
from popcore.kernels.exact import absolute
from popcore.kernels.operation import F16, F32, lowering_registry, state

_NAN = float("nan")


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


def operand(builder, value):
    """A half that was widened, as an operand of arithmetic: on a tile an infinity is no number."""
    if state.arithmetic.rule == IEEE:
        return value
    traps.check_operand(builder, value)
    return finite_or_nan(builder, value)


def finite_or_nan(builder, value):
    """A float32, or NaN where it is infinite; but for the rule of IEEE."""
    if state.arithmetic.rule == IEEE:
        return value
    return builder.fsub(value, builder.fsub(value, value))  # x - x is 0, or NaN where x is not finite


def narrow(builder, value):
    """The half that a float32 is converted to; infinity gives NaN, but for the rule of IEEE."""
    traps.check_narrow(builder, value)
    return _narrow(builder, finite_or_nan(builder, value))


def narrow_result(builder, value):
    """The half of what a function of finite numbers gave: an infinity is a result too large, and saturates too."""
    traps.check_narrow(builder, value)
    return _narrow(builder, value)


def _narrow(builder, value):
    if state.arithmetic.stochastic:
        return stochastic.narrow(builder, value, state.arithmetic.rule)
    return _nearest(builder, value)


def _nearest(builder, value):
    rule = state.arithmetic.rule
    if rule == NAN:
        large = builder.fcmp_ordered(">=", absolute(builder, value), F32(OVERFLOWS))
        value = builder.select(large, F32(_NAN), value)
    elif rule != IEEE:
        value = builder.select(builder.fcmp_ordered(">", value, F32(LARGEST)), F32(LARGEST), value)
        value = builder.select(builder.fcmp_ordered("<", value, F32(-LARGEST)), F32(-LARGEST), value)
    return builder.fptrunc(value, F16)
