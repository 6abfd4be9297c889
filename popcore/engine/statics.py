"""Variables that C++ codelets keep outside of their vertices, in a saved state. They lie in the codelets' libraries, not in the arena."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from popcore.codelet import NativeCodelet
from popcore.errors import EngineError, StateFileError
from popcore.executable import Executable

if TYPE_CHECKING:
    from popcore.bindings.kept import Keeper
    from popcore.bindings.unit import NativeType


class Statics(msgspec.Struct, forbid_unknown_fields=True):
    """What one library keeps, of the tiles on which it is no longer what it was at first."""

    unit: int
    rules: tuple[str, ...]
    variables: tuple[tuple[str, int], ...]
    tiles: tuple[int, ...]  # counted over all replicas


class Kept(msgspec.Struct):
    """The same, with the values."""

    what: Statics
    values: bytes


Loaded = list[tuple["Keeper", Statics, bytes]]


def natives(executable: Executable) -> list[NativeType]:
    """The codelets of an Executable that are compiled ones."""
    return [c.native for c in executable.codelets if isinstance(c, NativeCodelet)]


def gather_statics(executable: Executable, memories: Sequence[int]) -> list[Kept]:
    """What tiles keep, of the libraries in this process. ``memories``: the address of each replica's.

    Raises: EngineError: a value looks like an address, which would mean nothing in another process; a library made by hand has variables.
    """
    if not (types := natives(executable)):
        return []
    from popcore.bindings.kept import keepers, units_of

    for unit in units_of(types):
        if names := unit.unkept():
            raise EngineError(
                f"the state cannot be saved: {unit.files[0].name} has variables outside of vertices, which a state cannot hold: {', '.join(names[:4])}",
                "keep them in fields of vertices; or a C++ codelet, whose variables are saved",
            )
    made: list[Kept] = []
    for keeper in keepers(types):
        found = enumerate(keeper.values(memory, tile) for memory, tile in _places(executable, memories))
        held = [(number, bytes(values)) for number, values in found if values is not None]
        for number, content in held:
            if (name := keeper.address_in(content)) is not None:
                raise EngineError(
                    f"the state cannot be saved: variable {name!r} of C++ codelets, outside of their vertices, holds an address on tile "
                    f"{number % executable.target.num_tiles}",
                    "keep numbers in it, not pointers or containers; or move it into the vertex",
                )
        if held:
            what = Statics(keeper.unit, keeper.rules, keeper.variables, tuple(number for number, _ in held))
            made.append(Kept(what, b"".join(content for _, content in held)))
    return made


def check_statics(shown: str, executable: Executable, kept: Sequence[Statics], content: Callable[[str, int], bytes]) -> Loaded:
    """Find who keeps what. Changes nothing. ``content``: an entry of the file, of no more than so many bytes.

    Raises: StateFileError: the file is damaged, or a codelet has other variables now.
    """
    types = natives(executable)
    if kept and not types:
        raise StateFileError(f"{shown!r} is damaged: it has variables of C++ codelets, and the program has none")
    made: Loaded = []
    for number, each in enumerate(kept):
        from popcore.bindings.kept import find_keeper

        keeper = find_keeper(types, each.unit, each.rules, each.variables)
        if keeper is None:
            names = ", ".join(name for name, _ in each.variables[:4])
            raise StateFileError(f"{shown!r} has variables of C++ codelets that are not there any more, or have another size: {names}")
        size, places = sum(nbytes for _, nbytes in each.variables), executable.replicas * executable.target.num_tiles
        values = content(f"statics{number}", size * len(each.tiles))
        if len(values) != size * len(each.tiles) or any(tile not in range(places) for tile in each.tiles):
            raise StateFileError(f"{shown!r} is damaged: its variables of C++ codelets are not those of the tiles")
        made.append((keeper, each, values))
    return made


def place_statics(executable: Executable, memories: Sequence[int], loaded: Loaded) -> None:
    """Give tiles what ``check_statics`` found. Needs: they have nothing of their own."""
    places = _places(executable, memories)
    for keeper, kept, values in loaded:
        rows = np.frombuffer(values, np.uint8).reshape(len(kept.tiles), -1)
        for row, tile in zip(rows, kept.tiles, strict=True):
            target = keeper.values(*places[tile], own=True)
            assert target is not None
            target[:] = row.tobytes()


def _places(executable: Executable, memories: Sequence[int]) -> list[tuple[int, int]]:
    """Memory and tile, of all replicas."""
    return [(memory, tile) for memory in memories for tile in range(executable.target.num_tiles)]
