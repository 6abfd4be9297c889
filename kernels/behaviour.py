"""How floating-point results are made: the bits of the machine's state, and what of it a driver is compiled for. Imports nothing heavy."""

from typing import NamedTuple

INV, DIV0, OFLO, ESR, NANOO = 1, 2, 4, 8, 16
"""The state, a word of these bits: stop at an invalid operation, a division by zero, an overflow; round stochastically; NaN where a half overflows."""

TRAPS = INV | DIV0 | OFLO
ALL = TRAPS | ESR | NANOO
TRAP_SITES = {INV: -3, DIV0: -4, OFLO: -5}
"""What a driver leaves as the site of a fault (``abi.AUX_SITE``), by the exception. The values are the operands, then the result."""

TRAP_KINDS = {site: kind for kind, site in TRAP_SITES.items()}

SATURATE, NAN, IEEE = "saturate", "nan", "ieee"
LARGEST = 65504.0
OVERFLOWS = 65520.0  # the least that does not round to LARGEST


class Arithmetic(NamedTuple):
    """What a driver is compiled for. Denormals are no part of it: they are up to the processor's state, see ``environment``."""

    rule: str = SATURATE  # of a half that overflows
    stochastic: bool = False
    traps: int = 0  # bits of the state that stop the program

    @property
    def key(self) -> str:
        """Letters and digits that tell it from the others."""
        return f"{self.rule}{int(self.stochastic)}{self.traps}"


DEFAULT = Arithmetic()
"""Of a machine whose state nothing has set."""


def arithmetic_of(state: int, ieee: bool) -> Arithmetic:
    """The arithmetic of a machine in this state."""
    rule = IEEE if ieee else NAN if state & NANOO else SATURATE
    return Arithmetic(rule, bool(state & ESR), state & TRAPS)


def without_halves(arithmetic: Arithmetic) -> Arithmetic:
    """The one that gives the same code where nothing is rounded to half."""
    return Arithmetic(traps=arithmetic.traps)
