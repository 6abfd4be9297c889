"""From codelet files to a library: preprocess, find vertices, add drivers, compile, link; with second tries for older sources."""

from __future__ import annotations

import re
import tempfile
import warnings
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from popcore.bindings import cache, counters, diagnose, generate, toolchain
from popcore.bindings.candidate import Candidate
from popcore.bindings.extract import Found, extract
from popcore.bindings.source import Text

MUTABLE_INPUT = "-DPOPCORE_MUTABLE_INPUT"
PERMISSIVE = "-fpermissive"


@dataclass(frozen=True)
class Parsed:
    """One preprocessed file."""

    path: Path
    text: Text
    found: Found


class Builder:
    """Builds libraries of the codelets of some files.

    Args:
        files: Compiled apart and linked together.
        flags: The user's, after popcore's own.
        rules: Definitions that say which arithmetic is wanted.

    Raises: CodeletError: no compiler; a file that the preprocessor refuses.
    """

    def __init__(self, files: Sequence[Path], flags: Sequence[str], folder: Path, rules: Sequence[str]) -> None:
        self.files, self.flags, self.folder, self.rules = list(files), list(flags), folder, list(rules)
        self.compiler = toolchain.find_compiler()
        self.extra: list[str] = []  # of second tries
        self._counted = True  # the sources get counters
        self._refused = ""  # what the compiler said of halves that are a class, where the source takes none
        self.parsed = self._parse_all()

    @property
    def what(self) -> str:
        return ", ".join(f.name for f in self.files)

    def candidates(self) -> list[Candidate]:
        return [each for parsed in self.parsed for each in parsed.found.candidates]

    def dependencies(self) -> list[str]:
        """The files that the result depends on, the system's left out."""
        found = {file for parsed in self.parsed for file in parsed.text.files}
        ours = str(toolchain.HEADERS)
        return sorted(f for f in found if not f.startswith(("/usr/include/", "/usr/lib/", ours)) and Path(f).is_file())

    def user_digest(self) -> str:
        """A digest of what the user wrote, equal on every machine."""
        return cache.digest(*(p.text.user_text() for p in self.parsed), *self.flags)

    def has_halves(self) -> bool:
        """Whether the user's text has the word half, in any of its types."""
        return any(b"half" in p.text.user_text() or b"Half" in p.text.user_text() for p in self.parsed)

    def _command(self) -> list[str]:
        return [self.compiler, *toolchain.LANGUAGE, *toolchain.flags_of(self.compiler), *toolchain.CODE]

    def _parse_all(self) -> list[Parsed]:
        with ThreadPoolExecutor(len(self.files)) as pool:
            return list(pool.map(self._parse, self.files, range(len(self.files))))

    def _parse(self, file: Path, number: int) -> Parsed:
        includes = ("-isystem", str(toolchain.HEADERS), "-include", "popcore/driver.hpp")
        command = [*self._command(), *toolchain.DEFINES, *self.rules, *self.extra, *includes, *self.flags, "-E", "-x", "c++", str(file)]
        done = toolchain.run(command, file.name, self.folder)
        if done.returncode:
            raise diagnose.compile_error(done.stderr, file.name)
        text = Text(done.stdout.encode("utf-8", "replace"))
        first = number * (counters.MOST // len(self.files)) if self._counted else -1
        return Parsed(file, text, extract(text, str(file), toolchain.check_of(self.rules) != "off", first))

    def build(self, described: Sequence[int], driven: Sequence[int], what: str) -> str:
        """Build a library with descriptions of the candidates ``described`` and drivers of ``driven``. Returns its name in the folder.

        Raises: CodeletError with the user's file and line.
        """
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="build-") as place:
            objects = self._compile_all(Path(place), described, driven, what)
            library = Path(place) / "codelets.so"
            done = toolchain.run([*self._command(), *toolchain.LINK, *objects, *self.flags, "-o", str(library)], what, Path(place))
            if done.returncode:
                assembly = {name: where for p in self.parsed for name, where in p.found.assembly.items()}
                raise diagnose.link_error(done.stderr, what, assembly)
            name = cache.keep_library(library, self.folder)
            dumps = [path.read_text(encoding="utf-8", errors="replace") for each in objects if (path := Path(each).with_suffix(".code")).exists()]
            cache.write(self.folder / cache.code_of(name), zlib.compress("".join(map(_of_users, dumps)).encode(), 1))
            return name

    def _compile_all(self, place: Path, described: Sequence[int], driven: Sequence[int], what: str) -> list[str]:
        """Compile the files side by side. Returns the objects."""
        while True:
            with ThreadPoolExecutor(len(self.parsed)) as pool:  # toolchain.run limits how many compilers run at once
                started, first = [], 0
                for number, parsed in enumerate(self.parsed):
                    count = len(parsed.found.candidates)
                    here = [i - first for i in described if first <= i < first + count]
                    run_here = {i - first for i in driven if first <= i < first + count}
                    started.append(pool.submit(self._compile, parsed, number, first, here, run_here, place, what))
                    first += count
                failed = next((said for each in started if (said := each.result())), "")
            if not failed:
                if self._refused:
                    reason = diagnose.compile_error(self._refused, what).message.splitlines()[0]
                    warnings.warn(f"{what} does not take a half that is a class, so its halves overflow to infinity: {reason}", UserWarning, stacklevel=2)
                return [str(_object(place, number)) for number in range(len(self.parsed))]
            if not self._try_again(failed, what):
                raise diagnose.compile_error(self._refused or failed, what)

    def _compile(self, parsed: Parsed, number: int, first: int, described: Sequence[int], driven: set[int], place: Path, what: str) -> str:
        """Compile one file to an object. Returns what the compiler said if it refused, else ""."""
        found, text = parsed.found, parsed.text
        body = text.edited(found.edits)
        tail = ""
        if described or number == 0:
            prefix = f"file{number}_" if number else ""
            used = max((p.found.counters + i * (counters.MOST // len(self.files)) for i, p in enumerate(self.parsed) if p.found.counters), default=0)
            tail = generate.tables(found.candidates, described, driven, prefix, first, used)
        output = _object(place, number)
        whole = output.with_suffix(".ii")
        whole.write_bytes(generate.declarations(found).encode() + body + b"\n" + tail.encode("utf-8", "surrogateescape") + b"\n")
        flags = [f for f in self.flags if not f.startswith(("-I", "-D", "-U", "-l", "-L", "-Wl,"))]
        checked = toolchain.checked(self.compiler, toolchain.check_of(self.rules))
        code = output.with_suffix(".code")
        dump = toolchain.dump(self.compiler, code) if found.counters and not checked else ()
        command = [*self._command(), *checked, *dump, *self.extra, *flags, "-x", "c++-cpp-output", "-c", str(whole), "-o", str(output)]
        done = toolchain.run(command, f"{what} ({parsed.path.name})", place)
        said, dumped = _apart(done.stderr)
        if dumped:
            code.write_text(dumped, encoding="utf-8")
        return said or "no reason given" if done.returncode else ""

    def _try_again(self, said: str, what: str) -> bool:
        """Whether the source may compile by the rules of older compilers."""
        if MUTABLE_INPUT not in self.extra and diagnose.casts_away_const(said):
            self.extra.append(MUTABLE_INPUT)
            self.parsed = self._parse_all()
            return True
        if PERMISSIVE not in self.extra and diagnose.is_permissible(said) and "clang" not in self.compiler:
            self.extra.append(PERMISSIVE)
            reason = diagnose.compile_error(said, what).message.splitlines()[0]
            warnings.warn(f"{what} is not valid C++ and was compiled with -fpermissive: {reason}", UserWarning, stacklevel=2)
            return True
        if self._counted and any(p.found.counters for p in self.parsed):
            self._counted = False
            self.parsed = self._parse_all()
            return True
        if any(rule.startswith(toolchain.HALF_RULE) for rule in self.rules) and self.has_halves():
            self._refused, self.rules = said, [rule for rule in self.rules if not rule.startswith(toolchain.HALF_RULE)]
            self.parsed = self._parse_all()
            return True
        return False


def _apart(said: str) -> tuple[str, str]:
    """What a compiler says, and what clang++ writes behind it of functions."""
    begin = re.search(r"(?m)^(?:; )?\*\*\* IR Dump ", said)
    return (said, "") if begin is None else (said[: begin.start()], said[begin.start() :])


def _of_users(dump: str) -> str:
    """Without functions of popcore and of the standard library that no codelet is made of."""
    parts = _FUNCTION.split(dump)
    return "".join(part for part in parts if _FUNCTION.match(part) and not _OURS.match(part))


_FUNCTION = re.compile(r"(?m)^(?=;; Function |(?:; )?\*\*\* IR Dump )")
_OURS = re.compile(
    r";; Function (?!popcore::written(?:_apart)?<)(?:popcore::|popcore_|std::|__)"
    r"|(?:; )?\*\*\* IR Dump Before \w+ on (?!_ZN7popcore(?:7written|13written_apart)I)(?:_ZNK?7popcore|_ZNK?St|_ZSt|popcore_|__)"
)


def _object(place: Path, number: int) -> Path:
    return place / f"{number}.o"


def build_c(files: Sequence[Path], flags: Sequence[str], folder: Path) -> str:
    """Build a library of C files that define the tables of codelet_abi.h themselves. Returns its name in the folder."""
    compiler = toolchain.find_compiler("c")
    what = ", ".join(f.name for f in files)
    with tempfile.TemporaryDirectory(dir=folder, prefix="build-") as place:
        library = Path(place) / "codelets.so"
        own = ["-O3", "-march=native", "-ffp-contract=off", "-fPIC", "-shared", "-Wl,-z,defs", "-w", "-fdiagnostics-color=never"]
        done = toolchain.run([compiler, *own, "-isystem", str(toolchain.HEADERS), *flags, *map(str, files), "-lm", "-o", str(library)], what, Path(place))
        if done.returncode:
            undefined = "undefined reference" in done.stderr
            raise diagnose.link_error(done.stderr, what, {}) if undefined else diagnose.compile_error(done.stderr, what)
        return cache.keep_library(library, folder)
