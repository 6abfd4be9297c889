"""Names of vertex types as users write them, made comparable: spaces, ``unsigned``, ``uint32_t`` and missing namespaces are forgiven."""

from __future__ import annotations

import ctypes
import functools
import re

_TOKEN = re.compile(r"[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*|\d[\w.']*|'.'|\"[^\"]*\"|\S")
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)(?:[uU]?[lL]{0,2}|[lL]{1,2}[uU]?)")
_WORDS = {"unsigned", "signed", "int", "short", "long", "char"}
_SAME = {
    "uint8_t": "unsigned char", "int8_t": "signed char", "uint16_t": "unsigned short", "int16_t": "short", "uint32_t": "unsigned int", "int32_t": "int",
    "uint64_t": "unsigned long long", "int64_t": "long long", "size_t": "unsigned int", "_Float16": "half", "poplar::half": "half", "uint": "unsigned int",
    "popcore::SaturatingHalf": "half", "SaturatingHalf": "half",  # g++ leaves out the namespace that asks
}  # fmt: skip


def tokens(name: str) -> tuple[str, ...]:
    """The parts of a name, each in its one spelling."""
    made: list[str] = []
    words: list[str] = []
    for token in _TOKEN.findall(name):
        token = re.sub(r"\s", "", token)
        plain = token.removeprefix("std::")
        if token in _WORDS:
            words.append(token)
            continue
        if words:
            made.append(_integer(words))
            words = []
        if token in ("class", "struct", "enum", "typename"):
            continue
        if token == ":" and made and made[-1] == ":":  # the :: of a leading or trailing scope
            made[-1] = "::"
            continue
        number = _NUMBER.fullmatch(token)
        made.append(str(int(number[1], 0)) if number and not re.match(r"0\d", token) else _SAME.get(plain, _SAME.get(token, token)))
    if words:
        made.append(_integer(words))
    if made[:1] == ["::"]:
        made = made[1:]
    return tuple(made)


def _integer(words: list[str]) -> str:
    unsigned = "unsigned" in words
    if "char" in words:
        return "unsigned char" if unsigned else "signed char" if "signed" in words else "char"
    size = "short" if "short" in words else "long long" if words.count("long") > 1 else "long" if "long" in words else "int"
    return f"unsigned {size}" if unsigned else size


def canonical(name: str) -> str:
    """The one spelling of a name: "ns::V<unsigned int,half>"."""
    return "".join(tokens(name))


def plain(name: str) -> str:
    """The class name alone: no namespaces, no arguments."""
    return name.split("<")[0].rsplit("::", 1)[-1].strip()


def alike(wanted: str, known: str) -> bool:
    """Whether ``wanted`` may mean ``known``: the same but for namespaces that one of them leaves out, or ``long`` for the 32 bits it has."""
    a, b = tokens(wanted), tokens(known)
    return len(a) == len(b) and all(x == y or _tail(x, y) or _tail(y, x) or _as_int(x) == _as_int(y) for x, y in zip(a, b, strict=True))


def demangled(symbol: str) -> str:
    """The name of a C++ function that the linker calls ``symbol``; ``symbol`` itself if it is none, or no C++ library is there that knows."""
    library = _cpp_library()
    if library is None:
        return symbol
    status = ctypes.c_int()
    found = library.__cxa_demangle(symbol.encode(), None, None, ctypes.byref(status))
    if not found:
        return symbol
    name = ctypes.string_at(found).decode()
    ctypes.CDLL(None).free(ctypes.c_void_p(found))
    return name


@functools.cache
def _cpp_library() -> ctypes.CDLL | None:
    for name in ("libstdc++.so.6", "libc++abi.so.1"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.__cxa_demangle.restype = ctypes.c_void_p
        return library
    return None


def _tail(whole: str, part: str) -> bool:
    return whole.endswith("::" + part)


def _as_int(token: str) -> str:
    return {"long": "int", "unsigned long": "unsigned int"}.get(token, token)
