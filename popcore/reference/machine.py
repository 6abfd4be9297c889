"""The floating-point state of a ReferenceEngine's machine, and one call of a codelet under it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from popcore.dialect import environment, rounding
from popcore.kernels.behaviour import Arithmetic, arithmetic_of


@dataclass
class Machine:
    """What ``popcore.program.behaviour`` changes, and what random bits depend on."""

    ieee: bool
    seed: int
    bits: int = 0  # see ``popcore.kernels.behaviour``
    phase: int = 0  # compute sets run since loading

    @property
    def arithmetic(self) -> Arithmetic:
        return arithmetic_of(self.bits, self.ieee)

    def restart(self) -> None:
        """As it is after loading."""
        self.bits = self.phase = 0

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Inside, this thread computes as a tile does."""
        with environment.denormals(flush=not self.ieee), rounding.using(self.arithmetic):
            yield
