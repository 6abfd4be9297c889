"""Makes codelet_abi.py of codelet_abi.h, so that what C compilers read and what Python reads is one text: ``python bindings/make_abi.py``.

Reading C takes cffi 45 ms, most of it for the import of its parser, and loading what it made of it less than one. A test
compares the two.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

HEADER = Path(__file__).with_name("codelet_abi.h")
MADE = Path(__file__).with_name("codelet_abi.py")
_FOR_CPLUSPLUS = re.compile(r"^#ifdef __cplusplus$.*?^#endif$", re.MULTILINE | re.DOTALL)
_DIRECTIVE = re.compile(r"^#(?!define \w+ \d+\b).*$", re.MULTILINE)


def declarations() -> str:
    """The header as cffi takes it: without what is for C++, and without directives but for constants."""
    return _DIRECTIVE.sub("", _FOR_CPLUSPLUS.sub("", HEADER.read_text(encoding="utf-8")))


def render() -> str:
    """The text of codelet_abi.py."""
    import cffi  # slow

    ffi = cffi.FFI()
    ffi.set_source("popcore.bindings.codelet_abi", None)
    ffi.cdef(declarations())
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.py"
        ffi.emit_python_code(str(made))
        lines = made.read_text(encoding="utf-8").split("\n", 1)[1]  # after a comment
    return f'"""What cffi reads in codelet_abi.h; made by make_abi.py."""\n{lines}'


if __name__ == "__main__":
    MADE.write_text(render(), encoding="utf-8")
