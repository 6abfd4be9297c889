"""The C++ compiler: which one, with which flags, and how it is run."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from popcore.bindings.cache import digest
from popcore.errors import CodeletError

HEADERS = Path(__file__).parent / "include"
TIME_LIMIT_SECONDS = 900.0
PATIENCE_SECONDS = 2.0  # a compiler's run that is shorter is not told of
_slots = threading.BoundedSemaphore(os.cpu_count() or 1)
_CANDIDATES = {"c++": ("g++", "clang++"), "c": ("gcc", "clang")}
_CHOICE = {"c++": "CXX", "c": "CC"}

HALF_RULE = "-DPOPCORE_HALF"  # what definitions of the arithmetic of halves begin with
DEFINES = ("-D__POPC__=1",)
LANGUAGE = ("-std=gnu++17", "-fno-access-control", "-w", "-fdiagnostics-color=never", "-fmax-errors=20")
# Results must not depend on the machine: no contraction to fused multiply-add, nothing that reassociates.
CODE = (
    "-O3", "-funroll-loops", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fPIC", "-fvisibility=hidden",
    "-fno-semantic-interposition", "-ffunction-sections", "-fdata-sections",
)  # fmt: skip
# Lines of the user's file are looked up where an access is at fault. For the full check the compiler puts a call before each
# load and store, of its detector of races, and must have moved none to where the program might not do it.
_LINES = ("-g",)
_CLANG_LINES = ("-gdwarf-4",)  # of version 5 addr2line of binutils 2.40 does not see what was inlined
_CLANG_RACES = ("-mllvm", "-tsan-instrument-read-before-write=1", "-mllvm", "-tsan-instrument-func-entry-exit=0")
_SCALAR = ("-O2", "-fsanitize=thread")
_CHECKED = {
    "off": ((), ()),
    "bounds": ((*_LINES, "-fno-split-ivs-in-unroller"), _CLANG_LINES),  # tests of indices leave few registers: a third faster so
    "full": (
        (*_SCALAR, *_LINES, "-fno-tree-loop-im", "-fno-tree-pre", "-fno-code-hoisting", "-fno-hoist-adjacent-loads", "-fno-crossjumping"),
        (*_SCALAR, *_CLANG_LINES, "-fno-vectorize", "-fno-slp-vectorize", *_CLANG_RACES),
    ),
}
LINK = ("-shared", "-Wl,-z,defs", "-Wl,--gc-sections")


def find_compiler(language: str = "c++") -> str:
    """The path of a compiler: $CXX or $CC if that is the name of a program, else the first that there is.

    Raises: CodeletError that says which package to install.
    """
    for name in (os.environ.get(_CHOICE[language], ""), *_CANDIDATES[language]):
        if name and (found := shutil.which(name)) is not None:
            return found  # not what a link leads to: compilers go by the name they are called by
    names = " or ".join(_CANDIDATES[language])
    raise CodeletError(f"no compiler for C++ codelets was found: neither {names} is on the PATH", "install one: apt install g++ (Fedora: dnf install gcc-c++)")


def flags_of(compiler: str) -> tuple[str, ...]:
    """Flags that only one family of compilers has: halves are rounded after every operation, and a loop may have no end."""
    if "clang" in os.path.basename(compiler):
        return ("-Xclang", "-ffloat16-excess-precision=none", "-fno-finite-loops")
    return ("-fexcess-precision=16",)


CHECK_RULES = {"off": (), "bounds": ("-DPOPCORE_CHECK=1",), "full": ("-DPOPCORE_CHECK=2",)}
"""Definitions for each value of ``debug.check``, which go among those of arithmetic."""


def check_of(rules: Sequence[str]) -> str:
    """The value of ``debug.check`` that some definitions are for."""
    return next((check for check, defined in CHECK_RULES.items() if defined and defined[0] in rules), "off")


def checked(compiler: str, check: str) -> tuple[str, ...]:
    """Flags of the compiler, not of the linker, for ``debug.check``."""
    return _CHECKED[check]["clang" in os.path.basename(compiler)]


# clang++ must not have taken counters, or loops that count, out of where they stand: no closed form after a loop, no memcpy for a
# loop, and no second copy of a loop for what a condition that does not change in it says.
_CLANG_DUMP = ("-print-before=loop-vectorize", "-replexitval=never", "-disable-loop-idiom-all", "-enable-nontrivial-unswitch=false")


def dump(compiler: str, path: Path) -> tuple[str, ...]:
    """Flags for a compiler that writes what it makes of functions before it vectorises: g++ to a file, clang++ among what it says."""
    if "clang" in os.path.basename(compiler):
        return tuple(flag for option in _CLANG_DUMP for flag in ("-mllvm", option))
    return (f"-fdump-tree-reassoc1={path}",)


@functools.cache
def _headers_digest() -> str:
    """A digest of this package: its headers and its code."""
    made = hashlib.blake2b(digest_size=20)
    for folder, names in sorted(_folders(str(HEADERS.parent))):
        for name in sorted(names):
            with open(os.path.join(folder, name), "rb", buffering=0) as file:
                content = file.read()
            made.update(f"{name} {len(content)} ".encode() + content)
    return made.hexdigest()


def _folders(top: str) -> list[tuple[str, list[str]]]:
    return [(folder, names) for folder, _, names in os.walk(top) if not folder.endswith("__pycache__")]


def environment(compiler: str) -> str:
    """What compiled codelets depend on besides their text: the compiler, this processor, popcore's headers and this package."""
    about = os.stat(compiler)
    paths = [os.environ.get(name, "") for name in ("CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH")]
    return digest(compiler, str(about.st_size), str(about.st_mtime_ns), _processor(), _headers_digest(), *paths)


@functools.cache
def _processor() -> str:
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8", errors="replace").splitlines() if about.exists() else []
    return next((line for line in lines if line.startswith("flags")), " ".join(os.uname()))  # another system: the machine's name has to do


def run(command: Sequence[str], what: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the compiler without a shell, as many at once as there are processors; its temporary files go to ``folder``.

    Args:
        what: Is being compiled: told on a terminal where it takes long.

    Raises: CodeletError if it takes longer than TIME_LIMIT_SECONDS.
    """
    environ = {**os.environ, "TMPDIR": str(folder), "LC_ALL": "C.UTF-8"}
    with (
        _slots,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, encoding="utf-8", errors="replace", env=environ
        ) as process,
    ):
        try:
            out, said = _output(process, what)
        except BaseException as error:
            process.kill()
            if isinstance(error, subprocess.TimeoutExpired):
                raise CodeletError(f"{what}: the compiler took more than {TIME_LIMIT_SECONDS:.0f} s", "split the file, or use fewer of its types") from None
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, said)


def _output(process: subprocess.Popen[str], what: str) -> tuple[str, str]:
    if not sys.stderr.isatty():
        return process.communicate(timeout=TIME_LIMIT_SECONDS)
    try:
        return process.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        print(f"compiling {what}", file=sys.stderr, flush=True)
        return process.communicate(timeout=TIME_LIMIT_SECONDS)
