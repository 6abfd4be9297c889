"""Variables that compiled codelets keep outside of their vertices, as bytes of each tile: for a state that is saved and loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from popcore.bindings.library import Library
from popcore.bindings.unit import NativeType, Unit

_WORD = 8  # bytes of an address


@dataclass(frozen=True)
class Keeper:
    """A library that keeps variables for every tile.

    unit: Number of the files that it was made of, in the order of the codelets.
    rules: Of arithmetic, that it was compiled by.
    variables: Name and bytes of each, in the order of a tile's values.
    """

    unit: int
    rules: tuple[str, ...]
    variables: tuple[tuple[str, int], ...]
    library: Library

    def values(self, memory: int, tile: int, own: bool = False) -> memoryview | None:
        """The values of a tile of the memory at an address, which may be changed.

        Returns: None where they still are those that all tiles begin with, unless ``own``.
        """
        return self.library.values(memory, tile, own)

    def address_in(self, values: bytes) -> str | None:
        """The name of a variable that seems to hold an address of this process, which means nothing in another."""
        at = 0
        for name, nbytes in self.variables:
            words = np.frombuffer(values[at : at + nbytes // _WORD * _WORD], np.uint64)
            inside = np.searchsorted(_mapped(), words, "right") % 2 == 1
            if inside.any():
                return name
            at += nbytes
        return None


def _mapped() -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """First byte, and byte after the last, of everything that this process has in its address space, ascending."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    return np.array([int(bound, 16) for line in lines for bound in line.split(" ", 1)[0].split("-")], np.uint64)


def units_of(types: Iterable[NativeType]) -> list[Unit]:
    """The files of some codelets, each once."""
    return list({id(each.unit): each.unit for each in types}.values())


def keepers(types: Sequence[NativeType]) -> Iterator[Keeper]:
    """All libraries that keep variables for codelets, as far as they are loaded."""
    for number, unit in enumerate(units_of(types)):
        for rules, found in unit.keeping():
            yield _keeper(number, rules, found)


def find_keeper(types: Sequence[NativeType], unit: int, rules: tuple[str, ...], variables: tuple[tuple[str, int], ...]) -> Keeper | None:
    """The library that keeps these variables, compiled if need be; None where there is none such any more."""
    units = units_of(types)
    if unit not in range(len(units)):
        return None
    variant = units[unit].variant(rules)
    variant.ensure([each.name for each in types if each.unit is units[unit]])
    found = [_keeper(unit, rules, each) for at, each in variant.keeping() if at == variant.rules]
    return next((each for each in found if each.variables == variables), None)


def _keeper(unit: int, rules: tuple[str, ...], found: Library) -> Keeper:
    return Keeper(unit, rules, tuple((v.name, v.nbytes) for v in found.variables), found)
