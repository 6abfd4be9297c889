"""The C interface says the same in its header, in the kernels and in Python."""

import re

import cffi
import pytest

from popcore.bindings import library, make_abi, names, toolchain
from popcore.kernels import abi

HEADER = (toolchain.HEADERS.parent / "codelet_abi.h").read_text(encoding="utf-8")
DEFINED = {name: int(value) for name, value in re.findall(r"^#define POPCORE_(\w+) (\d+)$", HEADER, re.MULTILINE)}


def test_the_words_of_aux_are_those_of_the_kernels():
    """
    Every AUX_ constant of the header is that of the kernels.
    """
    words = {name: value for name, value in DEFINED.items() if name.startswith("AUX_")}
    assert words == {name: getattr(abi, name) for name in words}
    assert {"AUX_VALUES", "AUX_WORDS"} <= set(words)


def test_python_reads_what_the_header_says():
    """
    codelet_abi.py is what cffi makes of the header, all constants included.
    """
    assert make_abi.MADE.read_text(encoding="utf-8") == make_abi.render(), "run: python bindings/make_abi.py"
    assert {name: library.number(name) for name in DEFINED} == DEFINED


def test_what_cffi_reads_is_what_compilers_read(tmp_path):
    """
    Both see the same structures: a compiler is told what cffi counted.
    """
    ffi = cffi.FFI()
    ffi.cdef(make_abi.declarations())
    claims = [
        f'_Static_assert(sizeof({name}) == {ffi.sizeof(name)} && offsetof({name}, {member}) == {field.offset}, "{name}.{member}");'
        for name in ("popcore_field", "popcore_type", "popcore_variable")
        for member, field in ffi.typeof(name).fields
    ]
    assert len(claims) == 15
    source = tmp_path / "claims.c"
    source.write_text("\n".join(["#include <stddef.h>", f'#include "{make_abi.HEADER}"', *claims]))
    done = toolchain.run([toolchain.find_compiler("c"), "-fsyntax-only", str(source)], "claims", tmp_path)
    assert not done.stderr


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("V< unsigned , half>", "V<unsigned int,half>"),
        ("::ns :: V<std::uint8_t, true, 0x10u>", "ns::V<unsigned char,true,16>"),
        ("V<short unsigned int,long long int,_Float16>", "V<unsigned short,long long,half>"),
        ("V<enum Op, W<int, 3>>", "V<Op,W<int,3>>"),
    ],
)
def test_names(name, spelled):
    """
    Names have one spelling.
    """
    assert names.canonical(name) == spelled
    assert names.alike(name, spelled)


def test_names_may_leave_out_namespaces():
    """
    Both of a name's sides may leave out namespaces; nothing else.
    """
    assert names.alike("V<ADD,float>", "ns::V<ns::expr::Op::ADD,float>")
    assert not names.alike("V<ADD,float>", "ns::V<ns::expr::Op::ADD,half>")
    assert not names.alike("V<ADD>", "ns::V<ns::expr::Op::PADD>")
