"""The codelets of one call of add_codelets: found by name, described and compiled when they are asked for, remembered in the cache."""

from __future__ import annotations

import difflib
import os
import platform
import shlex
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from popcore.bindings import cache, elf, library, names, toolchain
from popcore.bindings.candidate import Candidate
from popcore.bindings.library import Library, TypeRecord
from popcore.errors import CodeletError
from popcore.types import LONG, UNSIGNED_LONG, ElementType, as_element_type

if TYPE_CHECKING:
    from popcore.bindings.build import Builder

DEVICE_RULES = (f"{toolchain.HALF_RULE}_SATURATES",)
"""What the compiler is told of the arithmetic of a machine as it begins: see ``include/popcore/saturating_half.hpp`` for all of them."""


@dataclass(frozen=True)
class NativeField:
    """One field of a compiled codelet."""

    name: str
    direction: str  # "in", "out", "inout" or "state"
    shape: str  # "scalar", "vector" or "list"
    dtype: ElementType
    align: int  # bytes; 0: the element's own
    interleaved: bool
    scalars: bool  # a list whose pieces have one element each


@dataclass(frozen=True)
class NativeType:
    """A vertex class of a compiled language, ready to be used in a graph."""

    name: str
    fields: tuple[NativeField, ...]
    workers: int
    file: str
    line: int
    fingerprint: str  # of its source and flags; equal on every machine
    unit: Unit = field(compare=False, repr=False)

    def driver(self, rules: Sequence[str] = DEVICE_RULES) -> int:
        """Address of its driver, compiled by some rules of arithmetic if need be."""
        return self.unit.variant(rules).driver(self.name)

    def may_print(self) -> bool:
        """Whether it may print, as far as is known before it is compiled."""
        return self.unit.may_print(self.name)

    def code(self) -> str:
        """What the compiler made of it before it made instructions, "" if that is not to be had; HALF as arithmetic of its own, not emulated."""
        return "" if self.unit.made_by_hand else self.unit.variant(()).code(self.name)

    def weigh(self, adds: Mapping[int, int], rules: Sequence[str] = DEVICE_RULES) -> None:
        """Say what its counters add, in its driver by some rules of arithmetic."""
        self.unit.variant(rules).weigh(self.name, adds)


class _Record(msgspec.Struct):
    """What the cache remembers of a unit."""

    dependencies: dict[str, str]  # file -> digest of its content
    user_digest: str
    candidates: list[Candidate]
    types: dict[str, TypeRecord]  # number of the candidate, as text -> its description
    drivers: dict[str, str]  # name of the type -> library that has its driver
    variables: list[str]  # that codelets keep outside of their vertices
    halves: bool = True  # the user's text has the word half


class Unit:
    """See ``open_unit``. ``rules``: definitions that say which arithmetic it is compiled for."""

    def __init__(self, files: Sequence[Path], flags: Sequence[str], rules: Sequence[str] = DEVICE_RULES) -> None:
        self.files, self.flags, self.rules = list(files), list(flags), tuple(rules)
        self._variants: dict[tuple[str, ...], Unit] = {self.rules: self}
        self._folder = cache.work_folder()
        self._lock = threading.RLock()
        self.made_by_hand = all(f.suffix == ".so" for f in files) or all(f.suffix == ".c" for f in files)
        self._builder: Builder | None = None
        self._found: dict[str, NativeType] = {}
        parts = ["", "library"] if files[0].suffix == ".so" else [toolchain.environment(toolchain.find_compiler("c" if self.made_by_hand else "c++")), "source"]
        parts += [*map(str, self.files), "\0", *self.flags, "\0", *self.rules]
        self._path = self._folder / (cache.digest(*parts) + ".record")
        self._record = self._remembered() or self._read_sources()

    def __repr__(self) -> str:
        return f"Unit({', '.join(f.name for f in self.files)})"

    def variant(self, rules: Sequence[str]) -> Unit:
        """The same codelets, compiled by other rules of arithmetic or with other checks; those of C files and libraries are what they are."""
        if self.made_by_hand:
            return self
        if not self._record.halves:  # what a half does is nothing to it
            rules = [rule for rule in rules if not rule.startswith(toolchain.HALF_RULE)]
            rules = [*DEVICE_RULES, *rules]
        key = tuple(rules)
        with self._lock:
            if key not in self._variants:
                self._variants[key] = made = Unit(self.files, self.flags, key)
                known = made._record.types  # the same sources have the same types
                known.update({number: record for number, record in self._record.types.items() if number not in known})
            return self._variants[key]

    def names(self) -> list[str]:
        """The types that the files have, as they are called."""
        described = {int(i): t.name for i, t in self._record.types.items() if t.is_codelet}
        refused = {int(i) for i, t in self._record.types.items() if not t.is_codelet}
        return [described.get(i, names.canonical(c.qualified)) for i, c in enumerate(self._record.candidates) if i not in refused]

    def find(self, name: str) -> NativeType | None:
        """The type that ``name`` stands for; None if there is none.

        Costs:  on first use of a file a compilation, unless the cache has it.
        Raises: CodeletError: it cannot be compiled, has a field that a tile cannot hold, or the name stands for several.
        """
        with self._lock:
            if (known := self._found.get(name)) is not None:
                return known
            index = self._match(name)
            if index is None:
                return None
            if str(index) not in self._record.types:
                self._describe(index)
            record = self._record.types[str(index)]
            if not record.is_codelet:
                return None
            self._found[name] = made = self._native(index, record)
            return made

    def _match(self, name: str) -> int | None:
        wanted = names.canonical(name)
        described = {i: t.name for i, t in self._record.types.items()}
        known = [(i, described.get(str(i), names.canonical(c.qualified))) for i, c in enumerate(self._record.candidates)]
        for test in (lambda each: each == wanted, lambda each: names.alike(wanted, each)):
            found = [i for i, each in known if test(each)]
            if len({known[i][1] for i in found}) > 1:
                shown = " or ".join(repr(known[i][1]) for i in found[:3])
                raise CodeletError(f"{name!r} may stand for several codelets of {self.files[0].name}", shown)
            if found:
                return found[0]
        undescribed = len(described) < len(known)
        if undescribed and any(names.plain(name) == names.plain(each) for _, each in known):
            self._build(list(range(len(known))), [], names.canonical(name))  # aliases and default arguments: the compiler knows the names
            return self._match(name) if len(self._record.types) == len(known) else None
        return None

    def _describe(self, index: int) -> None:
        """Describe all types of the files at once, which instantiates no bodies, and compile the one asked for with them."""
        what = f"codelet {names.canonical(self._record.candidates[index].qualified)}"
        everything = list(range(len(self._record.candidates)))
        try:
            self._build(everything, [index], what)
        except CodeletError:
            if len(everything) == 1:
                raise
            self._build([index], [index], what)  # another type may be what does not compile

    def _build(self, described: Sequence[int], driven: Sequence[int], what: str) -> None:
        loaded = self._load(self._sources().build(described, driven, what))
        for record in loaded.types:
            self._record.types[str(record.index)] = record

    def _sources(self) -> Builder:
        """The sources, preprocessed."""
        if self._builder is None:
            from popcore.bindings.build import Builder  # a warm start builds nothing

            self._builder = Builder(self.files, self.flags, self._folder, self.rules)
        return self._builder

    def _load(self, name: str) -> Library:
        """Load a library that was built now, and remember what it has."""
        loaded = library.load(self._folder, name)
        self._record.drivers.update(dict.fromkeys(loaded.drivers, name))
        self._record.variables = sorted({*self._record.variables, *(v.name for v in loaded.variables)})
        self._remember(loaded)
        return loaded

    def _remember(self, loaded: Library) -> None:
        self._record.types.update({str(t.index): t for t in loaded.types})
        cache.keep(self._path, msgspec.json.encode(self._record))

    def _native(self, index: int, record: TypeRecord) -> NativeType:
        candidate = self._record.candidates[index]
        where = f"codelet {record.name} ({os.path.basename(candidate.file)}:{candidate.line})"
        fields = []
        for f in record.fields:
            if f.shape == "refused":
                raise CodeletError(
                    f"field {f.name!r} of {where} has type {f.type}, which a tile cannot hold",
                    "Input, Output or InOut of a scalar, Vector or VectorList, a Vector of those, or a plain integer, float, half, bool or enum",
                    file=candidate.file, line=candidate.line,
                )  # fmt: skip
            dtype = as_element_type(f.type)
            if f.name in candidate.long_fields:
                dtype = as_element_type(LONG if dtype.kind == "int" else UNSIGNED_LONG)
            align = f.align if f.align > dtype.nbytes else 0
            fields.append(NativeField(f.name, f.direction, f.shape, dtype, align, f.interleaved, f.scalars))
        fingerprint = cache.digest(self._record.user_digest, record.name)
        return NativeType(record.name, tuple(fields), record.workers, candidate.file, candidate.line, fingerprint, self)

    def driver(self, name: str) -> int:
        """Address of the driver of the type called ``name``."""
        self.ensure([name])
        return library.load(self._folder, self._record.drivers[name]).drivers[name]

    def code(self, name: str) -> str:
        """What the compiler wrote of the functions of the library that has a driver."""
        self.ensure([name])
        if self._record.variables:  # what is done to them depends on who else looks at them: always all types
            self.ensure(t.name for t in self._record.types.values() if t.is_codelet and all(f.shape != "refused" for f in t.fields))
        content = cache.read(self._folder / cache.code_of(self._record.drivers[name]))
        return zlib.decompress(content).decode() if content else ""

    def weigh(self, name: str, adds: Mapping[int, int]) -> None:
        """See ``NativeType.weigh``."""
        self.ensure([name])
        library.load(self._folder, self._record.drivers[name]).weigh(name, adds)

    def may_print(self, name: str) -> bool:
        """Whether the type called ``name`` may print, as far as is known before it is compiled."""
        known = self._record.drivers.get(name)
        return known is None or not cache.is_whole(self._folder, known) or library.load(self._folder, known).prints

    def ensure(self, wanted: Iterable[str]) -> None:
        """Have drivers of all the types ``wanted``; those that share variables outside of vertices in one library."""
        with self._lock:
            asked = list(dict.fromkeys(wanted))
            for name in asked:
                self.find(name)  # of a variant it may not be described yet
            have = {n: lib for n, lib in self._record.drivers.items() if cache.is_whole(self._folder, lib)}
            self._record.drivers = have
            missing = [n for n in asked if n not in have]
            if missing:
                self._compile(missing)
            if self._record.variables and len({self._record.drivers[n] for n in asked}) > 1:
                self._compile([*dict.fromkeys([*asked, *self._record.drivers])])

    def _compile(self, wanted: Sequence[str]) -> None:
        if self.made_by_hand:
            self._record = self._read_sources()
            return
        numbers = [int(i) for i, t in self._record.types.items() if t.name in wanted]
        what = f"codelet {wanted[0]}" + (f" and {len(wanted) - 1} more" if len(wanted) > 1 else "")
        self._build(numbers, numbers, what)

    def forget(self, memory: int) -> None:
        """Give all tiles of the arena at ``memory`` the first values of variables outside of vertices."""
        for _, found in self.keeping():
            found.forget(memory)

    def keeping(self) -> Iterator[tuple[tuple[str, ...], Library]]:
        """The libraries that keep variables outside of vertices, each with the rules that it was compiled by."""
        for rules, unit in sorted(self._variants.items()):
            if unit._record.variables:
                for name in sorted(set(unit._record.drivers.values())):
                    if (found := library.load(unit._folder, name)).variables:
                        yield rules, found

    def unkept(self) -> list[str]:
        """Names of variables outside of vertices of a library made by hand, which all tiles share."""
        if not self.made_by_hand:
            return []
        return [v.name for name in sorted(set(self._record.drivers.values())) for v in library.load(self._folder, name).unkept]

    def _remembered(self) -> _Record | None:
        content = cache.kept(self._path)
        if content is None:
            return None
        try:
            record = msgspec.json.decode(content, type=_Record)
        except msgspec.MsgspecError:
            return None
        for file, digest in record.dependencies.items():
            try:
                if cache.digest(Path(file).read_bytes()) != digest:
                    return None
            except OSError:
                return None
        record.drivers = {name: lib for name, lib in record.drivers.items() if cache.is_whole(self._folder, lib)}
        return record

    def _read_sources(self) -> _Record:
        if self.made_by_hand:
            return self._read_by_hand()
        builder = self._sources()
        dependencies = {file: cache.digest(Path(file).read_bytes()) for file in builder.dependencies()}
        candidates = builder.candidates()
        if not candidates:
            raise CodeletError(f"{builder.what} has no vertex class", "class Name : public poplar::Vertex { ... }; templates need template class Name<float>;")
        return _Record(dependencies, builder.user_digest(), candidates, {}, {}, [], builder.has_halves())

    def _read_by_hand(self) -> _Record:
        """A library that defines the tables itself, or C files that make one."""
        contents = [f.read_bytes() for f in self.files]
        if self.files[0].suffix == ".so":
            name, made_for = cache.digest(contents[0]) + ".so", elf.machine(contents[0])
            if made_for is not None and made_for != platform.machine():
                raise CodeletError(f"{self.files[0].name} was made for {made_for}, this is {platform.machine()}", "make it for this processor")
            cache.write(self._folder / name, contents[0])
        else:
            from popcore.bindings.build import build_c

            name = build_c(self.files, self.flags, self._folder)
        loaded = library.load(self._folder, name)
        file = str(self.files[0])
        candidates = [Candidate((), t.name, file, 1, tuple(f.name for f in t.fields), (), False) for t in loaded.types]
        types = {str(i): msgspec.structs.replace(t, index=i) for i, t in enumerate(loaded.types)}
        dependencies = {str(f): cache.digest(c) for f, c in zip(self.files, contents, strict=True)}
        record = _Record(dependencies, cache.digest(*contents, *self.flags), candidates, types, dict.fromkeys(loaded.drivers, name), [])
        cache.keep(self._path, msgspec.json.encode(record))
        return record


def open_unit(what: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], flags: str | Sequence[str] = ()) -> Unit:
    """The codelets of a file, of several files that need each other, or of a text of C++.

    Args:
        what: A path, a list of paths, or source text (a string of several lines). ``.c`` files and ``.so`` libraries
            define the tables of codelet_abi.h themselves.
        flags: For the compiler, after popcore's own: "-I../include -DUSE_HALF".

    Raises: CodeletError: no such file; one that is not C++; a compile error, with the user's file and line.
    """
    if isinstance(what, str) and ("\n" in what or "{" in what):
        paths = [_kept_text(what)]
    else:
        given = [what] if isinstance(what, (str, os.PathLike)) else list(what)
        paths = [Path(os.path.abspath(os.fspath(p))) for p in given]
    if not paths:
        raise CodeletError("add_codelets was given an empty list", "pass the paths of the codelet's files")
    for path in paths:
        if (refused := _refused(path)) is not None:
            raise refused
        if not path.is_file():
            near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*")] if path.parent.is_dir() else [], n=1)
            raise CodeletError(f"there is no codelet file {path}", f"{near[0]!r} is there" if near else "check the path")
    return Unit(paths, shlex.split(flags) if isinstance(flags, str) else list(flags))


def _refused(path: Path) -> CodeletError | None:
    """The error for a file that holds instructions of an IPU."""
    if path.suffix in (".S", ".s", ".asm"):
        return CodeletError(f"{path.name} is assembly of an IPU, which is not emulated", "give the C++ version of the codelet")
    if path.suffix == ".gp":
        return CodeletError(f"{path.name} holds code compiled for an IPU, which is not emulated", "give the C++ source that it was made from")
    return None


def _kept_text(text: str) -> Path:
    """A file with the text, so that the compiler and debuggers can show lines of it."""
    folder = cache.work_folder()
    path = folder / f"source-{cache.digest(text)[:16]}.cpp"
    if cache.read(path) != text.encode():
        cache.write(path, text.encode())
    return path


def compile_all(types: Iterable[NativeType], rules: Sequence[str] = DEVICE_RULES) -> None:
    """Compile what ``types`` still need for some rules of arithmetic, files side by side."""
    by_unit: dict[int, tuple[Unit, list[str]]] = {}
    for each in types:
        unit = each.unit.variant(rules)
        by_unit.setdefault(id(unit), (unit, []))[1].append(each.name)
    if len(by_unit) == 1:
        for unit, wanted in by_unit.values():
            unit.ensure(wanted)
    elif by_unit:
        with ThreadPoolExecutor(min(len(by_unit), os.cpu_count() or 1)) as pool:
            for done in [pool.submit(unit.ensure, wanted) for unit, wanted in by_unit.values()]:
                done.result()
