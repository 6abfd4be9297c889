"""clamp and select: functions of three tensors, element by element."""

from popcore.codelets.operations import TernaryOpType as Op
from popcore.ops.popops.forms import ternary

clamp, clamp_in_place, clamp_with_output = ternary(Op.CLAMP, "a, but not below b, and not above c: where those two cross c wins.")
select, select_in_place, select_with_output = ternary(Op.SELECT, "a where c, a BOOL, is true, else b.")

__all__ = [
    "clamp",
    "clamp_in_place",
    "clamp_with_output",
    "select",
    "select_in_place",
    "select_with_output",
]
