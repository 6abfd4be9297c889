"""FP8: every code of both formats at every scale, to numbers and back, against ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest

import popcore as pc
from popcore import errors, poputil, program
from popcore.ops import popops
from popcore.ops.poputil import QuarterFormat, QuarterMetadata
from popcore.types import FLOAT, HALF, INT, QUARTER_F143, QUARTER_F152, SIGNED_CHAR, UNSIGNED_CHAR
from tests.ops.popops.runs import new_graph, run

FORMATS = [QUARTER_F143, QUARTER_F152]
SCALES = range(-32, 32)
CODES = np.arange(256, dtype=np.uint8)


def engine_of(graph, prog, kind, writes, reads):
    """An engine that runs many times: a function from arrays to what is read."""
    for i, t in enumerate(writes):
        graph.create_host_write(f"write {i}", t)
    for i, t in enumerate(reads):
        graph.create_host_read(f"read {i}", t)
    engine = kind(graph, prog)

    def once(*arrays):
        for i, array in enumerate(arrays):
            engine.write_tensor(f"write {i}", array)
        engine.run()
        return [engine.read_tensor(f"read {i}") for i in range(len(reads))]

    return once


@pytest.mark.parametrize(("kind", "scales"), [(pc.Engine, SCALES), (pc.ReferenceEngine, (-32, 0, 31))])
@pytest.mark.parametrize("dtype", FORMATS)
def test_every_code_at_every_scale_is_its_number(dtype, kind, scales):
    """Case D20: in FLOAT exactly, in HALF rounded once."""
    graph, prog = new_graph(), program.Sequence()
    q = graph.add_variable(dtype, (256,), mapping="linear", name="q")
    scale = poputil.create_variable_metadata_tensor(graph, dtype, 0)
    outs = [popops.cast(graph, q, wanted, prog, source_metadata=scale) for wanted in (FLOAT, HALF)]
    once = engine_of(graph, prog, kind, [q, scale], outs)
    exact = CODES.view(dtype.numpy).astype(np.float64)
    for s in scales:
        found = once(CODES.view(dtype.numpy), np.uint8(QuarterMetadata(poputil.quarter_format(dtype), s).get_binary()))
        with np.errstate(over="ignore"):
            for array in found:
                np.testing.assert_array_equal(array, np.clip(exact * 2.0**s, -end(array), end(array)).astype(array.dtype), err_msg=f"scale {s}")


def end(array):
    """The greatest number of an array's type, where HALF saturates."""
    return float(np.finfo(array.dtype).max)


def between(dtype):
    """Every finite number of a format, what lies halfway to the next, and the neighbours of that; then what is beyond the greatest."""
    whole = np.unique(CODES.view(dtype.numpy).astype(np.float32))
    whole = whole[np.isfinite(whole)]
    middle = np.append((whole[:-1] + whole[1:]) / 2, whole[-1] * 2 - (whole[-1] + whole[-2]) / 2).astype(np.float32)
    middle = np.append(middle, -middle[-1])
    near = [np.nextafter(middle, np.float32(side * np.inf)) for side in (-1, 1)]
    return np.concatenate([whole, middle, *near, np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, -1e-30])])


@pytest.mark.parametrize(("kind", "scales"), [(pc.Engine, SCALES), (pc.ReferenceEngine, (-32, 0, 31))])
@pytest.mark.parametrize("dtype", FORMATS)
def test_a_number_becomes_the_nearest_code_at_every_scale(dtype, kind, scales):
    """Ties to even, no number beyond the greatest, no minus zero."""
    x = between(dtype)
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(FLOAT, x.shape, mapping="linear", name="t")
    scale = poputil.create_variable_metadata_tensor(graph, dtype, 0)
    out = popops.cast(graph, t, dtype, prog, metadata=scale).reinterpret(UNSIGNED_CHAR)
    once = engine_of(graph, prog, kind, [t, scale], [out])
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for s in scales:
            at = np.ldexp(x, s)  # exact, but for what is far beyond
            (found,) = once(at, np.uint8(QuarterMetadata(poputil.quarter_format(dtype), s).get_binary()))
            wanted = np.ldexp(at, -s).astype(dtype.numpy).view(np.uint8)
            np.testing.assert_array_equal(found, wanted, err_msg=f"scale {s}")
    assert 0x80 in wanted


@pytest.mark.parametrize("dtype", FORMATS)
def test_every_half_becomes_the_nearest_code(dtype):
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(HALF, x.shape, mapping="linear", name="t")
    out = popops.cast(graph, t, dtype, prog).reinterpret(UNSIGNED_CHAR)
    found = run(graph, prog, {t: x}, {"out": out}, engines=[pc.Engine])["out"]
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, x.astype(np.float32).astype(dtype.numpy).view(np.uint8))


def test_fp8_to_fp8_and_to_integers():
    """By way of FLOAT: another format, another scale, whole numbers toward zero."""
    graph, prog = new_graph(), program.Sequence()
    q = graph.add_variable(QUARTER_F143, (256,), mapping="linear", name="q")
    i = graph.add_variable(SIGNED_CHAR, (256,), mapping="linear", name="i")
    double, eighth = (poputil.create_constant_metadata_tensor(graph, d, s) for d, s in ((QUARTER_F143, 1), (QuarterFormat.F152, -3)))
    other = popops.cast(graph, q, QUARTER_F152, prog, metadata=eighth, source_metadata=double).reinterpret(UNSIGNED_CHAR)
    whole = popops.cast(graph, q, INT, prog)
    back = graph.add_variable(QUARTER_F143, (256,), mapping="linear", name="back")
    popops.cast_with_output(graph, i, back, prog)
    codes = CODES.view(QUARTER_F143.numpy)
    found = run(graph, prog, {q: codes, i: CODES.view(np.int8)}, {"other": other, "whole": whole, "back": back.reinterpret(UNSIGNED_CHAR)})
    numbers = codes.astype(np.float32)
    np.testing.assert_array_equal(found["other"], (numbers * 2 * 8).astype(ml_dtypes.float8_e5m2fnuz).view(np.uint8))
    np.testing.assert_array_equal(found["whole"], np.nan_to_num(np.trunc(numbers)).astype(np.int32))
    np.testing.assert_array_equal(found["back"], CODES.view(np.int8).astype(np.float32).astype(QUARTER_F143.numpy).view(np.uint8))


def test_metadata_say_what_they_are():
    """In one byte, as far as scales go; of the tensor's own format, or the run stops."""
    assert QuarterMetadata(QuarterFormat.F152, -1).get_binary() == 0xBF
    assert QuarterMetadata(QuarterFormat.F143).dtype is QUARTER_F143
    with pytest.raises(errors.ValueRangeError, match="-32 to 31"):
        QuarterMetadata(QuarterFormat.F143, 32)
    graph, prog = new_graph(), program.Sequence()
    q = graph.add_variable(QUARTER_F143, (4,), mapping="linear", name="q")
    with pytest.raises(errors.ElementTypeError, match="no FP8 format"):
        poputil.create_constant_metadata_tensor(graph, HALF, 0)
    with pytest.raises(errors.ElementTypeError, match="source_metadata for FLOAT"):
        popops.cast(graph, graph.add_variable(FLOAT, (4,), tile=0), QUARTER_F143, prog, source_metadata=q)
    with pytest.raises(errors.ElementTypeError, match="source_metadata is"):
        popops.cast(graph, q, HALF, prog, source_metadata=q)
    with pytest.raises(errors.ElementTypeError, match="no FP8"):
        popops.cast(graph, graph.add_variable(FLOAT, (4,), tile=0), HALF, prog, metadata=poputil.create_constant_metadata_tensor(graph, QUARTER_F143, 0))
    popops.cast(graph, q, HALF, prog, source_metadata=poputil.create_constant_metadata_tensor(graph, QUARTER_F152, 0))
    with pytest.raises(errors.VertexError, match="other FP8 format"):
        pc.Engine(graph, prog).run()
