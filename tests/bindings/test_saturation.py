"""half in C++ by the machine's floating-point state: rules of overflow, stochastic rounding, and what stops a run."""

import numpy as np
import pytest

import popcore as pc
from popcore import FloatingPointBehaviour, errors
from tests.bindings.vertex import TILE, Built, run

LARGEST = np.float32(65504)
NAMES = ("sum", "difference", "product", "quotient", "grown", "converted", "squared")
RNG = np.random.default_rng(7)
A = np.concatenate([np.float16([65504, -65504, 300, -300, 1, 0, np.nan, np.inf]), RNG.standard_normal(40).astype(np.float16) * np.float16(300)])
B = np.concatenate([np.float16([65504, 65504, 300, 300, 0, 2**-14, 1, 1]), RNG.standard_normal(40).astype(np.float16) * np.float16(300)])
WIDE = np.concatenate([np.float32([65519.9, 65520, -1e30, np.inf, -np.inf, np.nan, 1, 2**-25]), RNG.standard_normal(40).astype(np.float32)])


RULES = {"saturate": ("device", None), "nan": ("device", FloatingPointBehaviour(False, False, False, False, True)), "ieee": ("ieee", None)}


def operand(x, rule):
    """An operand of arithmetic: on a device an infinity is no number."""
    x = np.asarray(x).astype(np.float32)
    return x if rule == "ieee" else np.where(np.isinf(x), np.float32(np.nan), x)


def rounded(x, rule):
    """A result in half."""
    with np.errstate(over="ignore"):
        if rule == "nan":
            return np.where(np.abs(x) >= 65520, np.float32(np.nan), x).astype(np.float16)
        return (np.clip(x, -LARGEST, LARGEST) if rule == "saturate" else x).astype(np.float16)


@pytest.mark.parametrize("rule", RULES)
def test_overflow(rule):
    """
    Each operation, by the rule that the mode asks for; what does not overflow is the same.
    """
    mode, behaviour = RULES[rule]
    fields = {"a": A, "b": B, "wide": WIDE, **{n: np.zeros_like(A) for n in NAMES}, "mixed": np.zeros_like(WIDE)}
    found = run("saturating.cpp", "Overflows", fields, {"scale": 256}, mode=mode, behaviour=behaviour)
    a, b = operand(A, rule), operand(B, rule)
    with np.errstate(all="ignore"):
        grown = operand(rounded(a * np.float32(256), rule), rule)
        wanted = {"sum": a + b, "difference": a - b, "product": a * b, "quotient": operand(a / b, rule), "grown": grown + np.float32(1)}
        wanted |= {"converted": operand(WIDE, rule), "squared": a**2}
    for name, value in wanted.items():
        assert np.array_equal(found[name], rounded(value, rule), equal_nan=True), name
    with np.errstate(invalid="ignore"):
        assert np.array_equal(found["mixed"], A.astype(np.float32) * 2 + (B < A), equal_nan=True)


@pytest.mark.parametrize("rule", ["saturate", "ieee"])
def test_overflow_in_short_vectors(rule):
    """
    half4 does what its elements do.
    """
    a, b = A[8:], B[8:]
    found = run("saturating.cpp", "OverflowsInPairs", {"a": a, "b": b, "out": np.zeros_like(a), "sum": np.float16(0)}, mode=RULES[rule][0])
    product = rounded(a.astype(np.float32) * b.astype(np.float32), rule)
    wanted = rounded(np.fmax(product, -a).astype(np.float32) + np.float32(1), rule)
    assert np.array_equal(found["out"], wanted)
    if rule == "saturate":
        total = np.zeros(4, np.float16)
        for each in wanted.reshape(-1, 4):
            total = rounded(total.astype(np.float32) + each.astype(np.float32), rule)
        whole = total[0]
        for each in total[1:]:
            whole = rounded(np.float32(whole) + np.float32(each), rule)
        assert found["sum"] == whole
        assert np.abs(wanted).max() == LARGEST


def test_stochastic_rounding():
    """
    Both engines round alike, to one of the two neighbours; the mean is the number.
    """
    wide = np.full(4000, 1.0004, np.float32)
    behaviour = FloatingPointBehaviour(False, False, False, True, False)
    found = run("saturating.cpp", "Converts", {"wide": wide, "out": np.zeros(4000, np.float16)}, behaviour=behaviour)["out"]
    assert set(found.tolist()) == {1.0, 1.0 + 2.0**-10}
    share = (float(wide[0]) - 1) * 2.0**10
    assert abs(found.astype(float).mean() - wide[0]) < 5 * 2.0**-10 * np.sqrt(share * (1 - share) / 4000)


def test_denormals_of_float():
    """
    Zero on a device, both as operands and as results; kept on request.
    """
    x = np.float32([1e-40, -1e-38, 1])
    for mode, wanted in (("device", x * np.float32([0, 0, 0.5]) * np.float32([1, -1, 1])), ("ieee", x * np.float32(0.5))):
        found = run("saturating.cpp", "Halves", {"x": x, "out": np.zeros_like(x)}, mode=mode)["out"]
        assert np.array_equal(found, np.abs(wanted) * np.sign(x)), mode


def test_a_source_that_takes_no_class_has_ieee_halves():
    """
    With a warning that says which line; the result is that of the compiler's own type.
    """
    text = """
    #include <poplar/Vertex.hpp>
    class Chooses : public poplar::Vertex {
    public:
      poplar::Input<poplar::Vector<half>> x;
      poplar::Output<poplar::Vector<half>> out;
      bool compute() {
        for (unsigned i = 0; i < x.size(); ++i)
          out[i] = (x[i] > half(0) ? half(x[i]) : 0.0f) * 2.0f;
        return true;
      }
    };
    """
    with pytest.warns(UserWarning, match="does not take a half that is a class"):
        found = run(text, "Chooses", {"x": np.float16([60000, -1]), "out": np.zeros(2, np.float16)})
    assert np.array_equal(found["out"], np.float16([np.inf, 0]))


@pytest.mark.parametrize(
    ("on", "value", "stops"),
    [("inv div0 oflo", 1e6, "oflo"), ("inv div0 oflo", np.inf, "inv"), ("inv div0 oflo", 0.0, "div0"), ("inv div0 oflo", 1.0, None), ("div0", 1e6, None)],
)
def test_what_stops_a_run(on, value, stops):
    """
    Only what is asked for; the message names codelet, tile and compute set.
    """
    behaviour = FloatingPointBehaviour(**{name: name in on.split() for name in ("inv", "div0", "oflo", "esr", "nanoo")})
    built = Built(
        "saturating.cpp", "Stops", {"wide": np.float32([value]), "out": np.zeros(1, np.float16), "inverse": np.zeros(1, np.float32)}, behaviour=behaviour
    )
    for engine_class in (pc.Engine, pc.ReferenceEngine):
        if stops is None:
            built.run(engine_class)
            continue
        with pytest.raises(errors.FloatingPointVertexError, match=rf"codelet Stops \(vertex 0 on tile {TILE}, compute set 'cs'\)") as caught:
            built.run(engine_class)
        assert caught.value.exception == stops
