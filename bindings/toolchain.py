"""The C++ compiler: which one, with which flags, and how it is run."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from popcore.bindings.cache import digest
from popcore.errors import CodeletError

HEADERS = Path(__file__).parent / "include"
TIME_LIMIT_SECONDS = 900.0
_CANDIDATES = {"c++": ("g++", "clang++"), "c": ("gcc", "clang")}

DEFINES = ("-D__POPC__=1",)
LANGUAGE = ("-std=gnu++17", "-fno-access-control", "-w", "-fdiagnostics-color=never", "-fmax-errors=20")
# Results must not depend on the machine: no contraction to fused multiply-add, nothing that reassociates.
CODE = (
    "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fPIC", "-fvisibility=hidden",
    "-fno-semantic-interposition", "-ffunction-sections", "-fdata-sections",
)  # fmt: skip
LINK = ("-shared", "-Wl,-z,defs", "-Wl,--gc-sections")


def find_compiler(language: str = "c++") -> str:
    """The path of a compiler.

    Raises: CodeletError that says which package to install.
    """
    for name in _CANDIDATES[language]:
        if (found := shutil.which(name)) is not None:
            return os.path.realpath(found)
    names = " or ".join(_CANDIDATES[language])
    raise CodeletError(f"no compiler for C++ codelets was found: neither {names} is on the PATH", "install one: apt install g++ (Fedora: dnf install gcc-c++)")


def flags_of(compiler: str) -> tuple[str, ...]:
    """Flags that only one family of compilers has."""
    return () if "clang" in os.path.basename(compiler) else ("-fexcess-precision=16",)


@functools.cache
def _headers_digest() -> str:
    files = [*sorted(p for p in HEADERS.rglob("*") if p.is_file()), HEADERS.parent / "codelet_abi.h", *sorted(HEADERS.parent.glob("*.py"))]
    return digest(*(str(p.relative_to(HEADERS.parent)) + "\0" + p.read_text(encoding="utf-8") for p in files))


def environment(compiler: str) -> str:
    """What compiled codelets depend on besides their text: the compiler, this processor, popcore's headers and this package."""
    about = os.stat(compiler)
    paths = [os.environ.get(name, "") for name in ("CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH")]
    return digest(compiler, str(about.st_size), str(about.st_mtime_ns), _processor(), _headers_digest(), *paths)


@functools.cache
def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("flags"):
                return line
    except OSError:
        pass  # another system: the machine's name has to do
    return " ".join(os.uname())


def run(command: Sequence[str], what: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the compiler without a shell; its temporary files go to ``folder``.

    Raises: CodeletError if it takes longer than TIME_LIMIT_SECONDS.
    """
    environ = {**os.environ, "TMPDIR": str(folder), "LC_ALL": "C.UTF-8"}
    try:
        return subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=TIME_LIMIT_SECONDS,
            check=False,
            env=environ,
        )
    except subprocess.TimeoutExpired:
        raise CodeletError(f"{what}: the compiler took more than {TIME_LIMIT_SECONDS:.0f} s", "split the file, or use fewer of its types") from None
