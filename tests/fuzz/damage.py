"""Changes files as accidents and attackers do: bytes anywhere; entries of a zip; and contents whose checksums are made right again."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from tests.fuzz.choices import Choices

ODD = (
    0,
    1,
    -1,
    2,
    7,
    255,
    1 << 31,
    (1 << 63) - 1,
    -(1 << 63),
    1 << 40,
    0.5,
    float("nan"),
    None,
    True,
    "",
    "x",
    "../../etc/passwd",
    "/srv/x\0y",
    b"",
    [],
    {},
    [[]],
)


def any_bytes(content: bytes, choose: Choices) -> bytes:
    """The file cut off, with bits flipped, a piece left out, doubled, overwritten or zeroed."""
    at = choose.below(len(content))
    length = 1 + choose.below(min(64, len(content)))
    how = choose.below(6)
    if how == 0:
        return content[:at]
    if how == 1:
        return content[:at] + bytes([content[at] ^ (1 << choose.below(8))]) + content[at + 1 :]
    if how == 2:
        return content[:at] + content[at + length :]
    if how == 3:
        return content[:at] + content[at : at + length] + content[at:]
    source = choose.below(len(content))
    piece = content[source : source + length] if how == 4 else bytes(length)
    return content[:at] + piece + content[at + len(piece) :]


def entries_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zip_of(entries: list[tuple[zipfile.ZipInfo | str, bytes]]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return out.getvalue()


def any_entries(content: bytes, choose: Choices) -> bytes:
    """The zip with an entry missing, twice with other content, under another name, added, exchanged with another, or a link."""
    entries: list[tuple[zipfile.ZipInfo | str, bytes]] = list(entries_of(content).items())
    at, other = choose.below(len(entries)), choose.below(len(entries))
    name, held = entries[at]
    how = choose.below(6)
    if how == 0:
        del entries[at]
    elif how == 1:
        entries.insert(other, (name, held[:-1] + b"!"))
    elif how == 2:
        entries[at] = (choose.of(["../x", "/etc/passwd", "arrays/../../x", "C:\\x", "a\0b", "x" * 300]), held)
    elif how == 3:
        entries.append((choose.of(["../../x", "more", "arrays/more.npy"]), b"x"))
    elif how == 4:
        entries[at], entries[other] = (name, entries[other][1]), (entries[other][0], held)
    else:
        link = zipfile.ZipInfo(str(name))
        link.create_system, link.external_attr = 3, 0o120777 << 16
        entries[at] = (link, b"/etc/passwd")
    return zip_of(entries)


def forged(content: bytes, choose: Choices) -> bytes:
    """A file by somebody who knows the format: a value of the header or of an array changed, and all checksums right."""
    entries = entries_of(content)
    header = msgspec.msgpack.decode(entries["header.msgpack"])
    arrays = [name for name in header["digests"] if len(entries[name]) > 0]
    if arrays and choose.below(2):
        name = choose.of(arrays)
        entries[name] = _other_array(entries[name], choose) if name.endswith(".npy") else _other_numbers(entries[name], choose)
        header["digests"][name] = _digest(entries[name])
    else:
        _change(header, choose)
    encoded = msgspec.msgpack.encode(header)
    entries["header.msgpack"], entries["digest"] = encoded, _digest(encoded).encode()
    return zip_of(list(entries.items()))


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=20).hexdigest()


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place of a nest of dicts and lists, as (container, key)."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ()
        for key in keys:
            found.append((each, key))
            waiting.append(each[key])
    return found


def _change(header: Any, choose: Choices) -> None:
    """One place of a header changed: another value, none, one too many, or a nest without end."""
    container, key = choose.of([(c, k) for c, k in _places(header) if k not in ("format", "version")])
    how = choose.below(8)
    if how == 0:
        del container[key]
    elif how == 1 and isinstance(container[key], list):
        container[key] = container[key] * 2 or [0]
    elif how == 2 and isinstance(container[key], int):
        container[key] += choose.of([1, -1, 8, 1 << 20])
    elif how == 3 and isinstance(container[key], str):
        container[key] = choose.of([container[key] + "x", container[key][:-1], "\x1b[2J", "half", "float", "int"])
    else:
        container[key] = choose.of(ODD)


def _other_array(content: bytes, choose: Choices) -> bytes:
    """An array with another element, shape or type; or a header that says more than is there."""
    array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False).copy()
    how = choose.below(8)
    if how == 0:
        array = array.astype(choose.of(["<f8", "<i2", ">i8", "<u8", "S3", "bool"]))
    elif how == 1:
        array = array[: choose.below(len(array) + 1)] if array.ndim else array
    elif how == 2:
        array = np.concatenate([array, array]) if array.ndim else array
    elif how == 3:
        array = array.reshape((*array.shape, 1))
    elif how == 4:
        text = choose.of(["(99999999999999999,)", "(-1,)", "(1 << 9,)", "((((((((1,)", "(4611686018427387904, 4)", "'x'", "__import__('os')", "(" * 300])
        kind = choose.of(["'<i8'", "'|O'", "'V9999999999'", "[('a', '<i8')]", "'x'"])
        said = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {text}, }}".encode()
        return b"\x93NUMPY\x01\x00" + len(said).to_bytes(2, "little") + said + content[-array.nbytes :]
    elif array.size:
        flat = array.reshape(-1)
        at = choose.below(flat.size)
        value = choose.of([0, 1, 2, 3, 8, 64, 1000, 1 << 20, (1 << 31) - 1, (1 << 47), (1 << 62), (1 << 63) - 1, -1, -8, -(1 << 40)])
        flat[at] = _wrapped(value, flat, at, choose)
    out = io.BytesIO()
    np.lib.format.write_array(out, np.ascontiguousarray(array), allow_pickle=False)
    return out.getvalue()


def _other_numbers(content: bytes, choose: Choices) -> bytes:
    """Raw bytes, shorter, longer, or with one of them changed."""
    how = choose.below(3)
    at = choose.below(len(content))
    if how == 0:
        return content[:at]
    return content + bytes(8) if how == 1 else content[:at] + bytes([choose.below(256)]) + content[at + 1 :]


def _wrapped(value: int, flat: np.ndarray, at: int, choose: Choices) -> Any:
    """``value``, or so much more than the element was, wrapped to its type."""
    if flat.dtype.kind == "b":
        return not flat[at]
    bits = 8 * flat.dtype.itemsize
    made = (value + (int(flat[at]) if choose.below(2) else 0)) % (1 << bits)
    return made - (1 << bits) if flat.dtype.kind == "i" and made >> (bits - 1) else made


DAMAGES: dict[str, Callable[[bytes, Choices], bytes]] = {"bytes": any_bytes, "entries": any_entries, "forged": forged}
