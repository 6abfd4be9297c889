"""The C interface says the same in its header, in the kernels and in Python."""

import ctypes
import re

import cffi
import pytest

from popcore.bindings import calls, library, names, toolchain
from popcore.kernels import abi

HEADER = (toolchain.HEADERS.parent / "codelet_abi.h").read_text(encoding="utf-8")
DEFINED = {name: int(value) for name, value in re.findall(r"^#define POPCORE_(\w+) (\d+)$", HEADER, re.MULTILINE)}


def test_the_words_of_aux_are_those_of_the_kernels():
    """
    Every AUX_ constant of the header is that of the kernels.
    """
    words = {name: value for name, value in DEFINED.items() if name.startswith("AUX_")}
    assert words == {name: getattr(abi, name) for name in words}
    assert calls.AUX_WORDS == abi.AUX_WORDS


def test_cffi_reads_the_header():
    """
    The header without its directives is what cffi takes, and its structures are those that Python reads.
    """
    ffi = cffi.FFI()
    text = re.sub(r'extern "C" \{|^#.*$', "", HEADER, flags=re.MULTILINE)
    ffi.cdef(text.rstrip().removesuffix("}"))
    assert ffi.sizeof("popcore_field") == ctypes.sizeof(library._CField)
    assert ffi.sizeof("popcore_type") == ctypes.sizeof(library._CType)
    assert ffi.offsetof("popcore_type", "workers") == library._CType.workers.offset
    assert DEFINED["ABI_VERSION"] == library.ABI_VERSION


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
