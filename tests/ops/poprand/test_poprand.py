"""Random numbers: bit for bit those of the documented generator, in range, and depending on what they should depend on only."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors, program
from popcore.ops import poprand
from popcore.types import FLOAT, HALF, INT, UNSIGNED_INT
from tests.ops.popops.runs import mapped, new_graph, run, shapes

DRAWN = settings(deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))
MASK = (1 << 64) - 1
SEED = np.array([7, 0xFFFFFFFF], np.uint32)
KINDS = {
    "uniform": (poprand.uniform, (-2, 3)),
    "log_uniform": (poprand.log_uniform, (0.5, 40)),
    "normal": (poprand.normal, (1, 2)),
    "truncated_normal": (poprand.truncated_normal, (1, 2, 1.5)),
    "bernoulli": (poprand.bernoulli, (0.25,)),
}


class Worker:
    """The generator as the ISA describes it, in plain Python."""

    def __init__(self, words):
        self.s0, self.s1 = (int(words[i]) | int(words[i + 1]) << 32 for i in (0, 2))

    def bits(self):
        rotl = lambda x, n: ((x << n) | (x >> (64 - n))) & MASK  # noqa: E731
        carry = self.s0 & self.s1
        out = (self.s0 ^ self.s1) ^ (rotl(carry, 1) | rotl(carry, 2))
        t1, t0 = self.s1 ^ self.s0, rotl(self.s0, 55)
        self.s0, self.s1 = (t0 ^ t1 ^ (t1 << 14)) & MASK, rotl(t1, 36)
        return out


def drawn(draw, dtype, arguments, numel=4000, seed=SEED, modifier=0, tiles=8, engines=(pc.Engine,)):
    """What an operation gives for a seed, over all tiles."""
    graph, prog = new_graph(tiles), program.Sequence()
    reference = graph.add_variable(dtype, (numel,))
    pc.poputil.map_tensor_linearly(graph, reference, 1, 1)
    tensor = None if seed is None else graph.add_variable(UNSIGNED_INT, (2,), tile=0)
    out = draw(graph, tensor, modifier, reference, dtype, *arguments, prog)
    return run(graph, prog, {} if seed is None else {tensor: seed}, {"out": out}, engines)["out"]


def test_bits_are_those_of_the_documented_generator():
    """
    Four elements a use of two steps, a share of the tile to each worker; and the states that are left.
    """
    graph, prog = new_graph(2), program.Sequence()
    reference = graph.add_variable(UNSIGNED_INT, (2, 53))
    for tile in range(2):
        graph.set_tile_mapping(reference[tile], tile)
    before = poprand.get_hw_seeds(graph, prog)
    reads = {"before": before, "bits": poprand.uniform(graph, None, 0, reference, FLOAT, 0, 1, prog), "after": poprand.get_hw_seeds(graph, prog)}
    found = run(graph, prog, {}, reads)
    share = 12
    for tile in range(2):
        for worker in range(6):
            one, wanted = Worker(found["before"][tile, worker]), []
            count = min(53, (worker + 1) * share) - worker * share
            for _ in range(2 * -(-max(count, 0) // 4)):
                bits = one.bits()
                wanted += [(bits & 0xFFFFFFFF) >> 8, bits >> 40]
            got = found["bits"][tile, worker * share : (worker + 1) * share] * 2**24
            np.testing.assert_array_equal(got, wanted[: max(count, 0)])
            left = Worker(found["after"][tile, worker])
            assert (left.s0, left.s1) == (one.s0, one.s1)


def test_normals_are_sums_of_twelve_numbers_of_five_bits():
    """
    And integers the upper part of a product.
    """
    graph, prog = new_graph(1), program.Sequence()
    reference = graph.add_variable(FLOAT, (24,), tile=0)
    before = poprand.get_hw_seeds(graph, prog)
    z = poprand.normal(graph, None, 0, reference, FLOAT, 0, 1, prog)
    middle = poprand.get_hw_seeds(graph, prog)
    k = poprand.uniform(graph, None, 0, reference, INT, -3, 1000, prog)
    found = run(graph, prog, {}, {"before": before, "z": z, "middle": middle, "k": k})
    for worker in range(6):
        one = Worker(found["before"][0, worker])
        wanted = [(sum(bits >> 5 * i & 31 for i in range(12)) - 186) / 32 for bits in (one.bits() for _ in range(4))]
        np.testing.assert_array_equal(found["z"][4 * worker : 4 * worker + 4], wanted)
        one = Worker(found["middle"][0, worker])
        np.testing.assert_array_equal(found["k"][4 * worker : 4 * worker + 4], [(one.bits() * 1004 >> 64) - 3 for _ in range(4)])


@DRAWN
@given(st.data(), shapes(), st.sampled_from(list(KINDS)), st.sampled_from([FLOAT, HALF, INT, UNSIGNED_INT]), st.booleans())
def test_engines_agree(data, shape, kind, dtype, seeded):
    """
    Any shape, type, mapping and view of the reference, which also says where the result is.
    """
    draw, arguments = KINDS[kind]
    if dtype in (INT, UNSIGNED_INT):
        draw, arguments = (poprand.uniform, (0, 3)) if kind != "bernoulli" else (draw, arguments)
    graph, prog = new_graph(), program.Sequence()
    _, view, _ = data.draw(mapped(graph, FLOAT, shape))
    seed = graph.add_variable(UNSIGNED_INT, (2,), tile=3)
    out = draw(graph, seed if seeded else None, 5, view, dtype, *arguments, prog)
    assert out.shape == shape
    assert out.dtype is dtype
    assert graph.get_tile_mapping(out) == graph.get_tile_mapping(view)
    run(graph, program.Repeat(2, prog), {seed: SEED}, {"out": out})


@pytest.mark.parametrize("dtype", [FLOAT, HALF], ids=repr)
def test_floats_stay_within(dtype):
    """
    Also where the limits are no numbers of the type, and where rounding would lead outside.
    """
    for low, high in ((0.1, 0.7), (1000.3, 1003.2), (-1e-3, 1e-3), (5, 5)):
        found = drawn(poprand.uniform, dtype, (low, high)).astype(np.float64)
        assert found.min() >= low
        assert found.max() <= high
    found = drawn(poprand.log_uniform, dtype, (1e-3, 1e3)).astype(np.float64)
    assert found.min() >= 1e-3
    assert found.max() <= 1e3
    assert abs(np.log10(found).mean()) < 6 * 1.74 / 4000**0.5
    assert np.abs(drawn(poprand.truncated_normal, dtype, (0, 1, 0.5)).astype(np.float64)).max() == 0.5


@pytest.mark.parametrize(
    ("kind", "mean", "deviation"),
    [("uniform", 0.5, 5 / 12**0.5), ("normal", 1, 2 * 0.99951), ("truncated_normal", 1, 2 * 0.7420), ("bernoulli", 0.25, 0.4330)],
)
def test_moments(kind, mean, deviation):
    """
    Mean and deviation over many draws; neighbours, tiles and workers do not go together.
    """
    draw, arguments = KINDS[kind]
    found = drawn(draw, FLOAT, arguments, 200_000).astype(np.float64)
    assert abs(found.mean() - mean) < 5 * deviation / found.size**0.5
    assert abs(found.std() / deviation - 1) < 0.02
    standard = (found - mean) / deviation
    for lag in (1, 2, 4, 25_000, 4168):
        assert abs((standard[lag:] * standard[:-lag]).mean()) < 5 / (found.size - lag) ** 0.5


def test_what_the_numbers_depend_on():
    """
    The seed, each half of it, and the modifier; not the threads, nor what ran before.
    """
    base = drawn(poprand.uniform, FLOAT, (0, 1))
    np.testing.assert_array_equal(drawn(poprand.uniform, FLOAT, (0, 1)), base)
    others = [base, drawn(poprand.uniform, FLOAT, (0, 1), modifier=1), drawn(poprand.uniform, FLOAT, (0, 1), seed=None)]
    others += [drawn(poprand.uniform, FLOAT, (0, 1), seed=np.array(s, np.uint32)) for s in ((8, 0xFFFFFFFF), (7, 0xFFFFFFFE), (0, 0))]
    for i, a in enumerate(others):
        for b in others[:i]:
            assert np.mean(a == b) < 0.01


def test_set_seed_makes_what_follows_repeat(engine_class):
    """
    The same seed, the same bits, in every run; without it the generators go on. A draw with a seed of its own leaves them alone.
    """
    graph, prog = new_graph(), program.Sequence()
    reference = graph.add_variable(FLOAT, (6, 8), "linear")
    seed = graph.add_variable(UNSIGNED_INT, (2,), tile=2)
    graph.create_host_write("seed", seed)
    first = program.Sequence()
    poprand.set_seed(graph, seed, 9, first)
    reads = {"a": poprand.normal(graph, None, 0, reference, FLOAT, 0, 1, prog)}
    reads["own"] = poprand.normal(graph, seed, 0, reference, FLOAT, 0, 1, prog)
    reads["b"] = poprand.normal(graph, None, 0, reference, FLOAT, 0, 1, prog)
    for name, t in reads.items():
        graph.create_host_read(name, t)
    engine = engine_class(graph, [first, prog])
    engine.write_tensor("seed", SEED)

    def draws(*programs):
        for which in programs:
            engine.run(which)
        return [engine.read_tensor(name) for name in reads]

    unseeded = draws(1)
    seeded, further, again = draws(0, 1), draws(1), draws(0, 1)
    np.testing.assert_array_equal(again, seeded)
    np.testing.assert_array_equal(further[1], seeded[1])
    for i, j in ((0, 0), (2, 2), (0, 2)):
        assert not np.array_equal(seeded[i], further[j])
    assert not np.array_equal(seeded[0], seeded[2])
    assert not np.array_equal(unseeded[0], seeded[0])
    engine.load()
    np.testing.assert_array_equal(draws(1)[0], unseeded[0])


def test_each_replica_has_states_of_its_own(engine_class):
    """
    Read with a leading dimension of replicas; alike after a seed that is the same for all; written back, draws repeat.
    """
    device = pc.Device("M2000", num_ipus=4, tiles_per_ipu=2)
    graph, prog, seeding, restoring = pc.Graph(device.target, replication_factor=4), program.Sequence(), program.Sequence(), program.Sequence()
    reference = graph.add_variable(FLOAT, (2, 30))
    graph.set_tile_mapping(reference, [[(0, 30)], [(30, 60)]])
    seeds = poprand.get_hw_seeds(graph, prog)
    out = poprand.uniform(graph, None, 0, reference, FLOAT, 0, 1, prog)
    poprand.set_hw_seeds(graph, seeds, restoring)
    poprand.set_seed(graph, graph.add_constant(UNSIGNED_INT, (2,), 5, tile=0), 0, seeding)
    graph.create_host_read("seeds", seeds)
    graph.create_host_read("out", out)
    engine = engine_class(graph, [prog, seeding, restoring])
    engine.run(0)
    states, drawn_first = engine.read_tensor("seeds"), engine.read_tensor("out")
    assert states.shape == (4, 2, 6, 4)
    assert len(np.unique(states.reshape(-1, 4), axis=0)) == 48
    assert len(np.unique(drawn_first.reshape(8, 30), axis=0)) == 8
    engine.run(2)
    engine.run(0)
    np.testing.assert_array_equal(engine.read_tensor("out"), drawn_first)
    engine.run(1)
    engine.run(0)
    assert all(np.array_equal(engine.read_tensor("out")[0], other) for other in engine.read_tensor("out"))


def test_virtual_graphs_use_the_states_of_their_tiles():
    """
    Halves of an IPU seen through virtual graphs, in another order too, do not share streams.
    """
    graph, prog = new_graph(4), program.Sequence()
    reads = {}
    for name, tiles in (("low", [0, 1]), ("high", [3, 2])):
        half = graph.create_virtual_graph(tiles)
        reference = half.add_variable(FLOAT, (2, 9), [[(0, 9)], [(9, 18)]])
        seed = half.add_constant(UNSIGNED_INT, (2,), 1, tile=0)
        reads[name] = poprand.uniform(half, None, 0, reference, FLOAT, 0, 1, prog)
        reads[f"{name} seeded"] = poprand.uniform(half, seed, 0, reference, FLOAT, 0, 1, prog)
        reads[f"{name} states"] = poprand.get_hw_seeds(half, prog)
    reads["states"] = poprand.get_hw_seeds(graph, prog)
    found = run(graph, prog, {}, reads)
    assert len(np.unique(np.concatenate([found["low"], found["high"], found["low seeded"], found["high seeded"]]), axis=0)) == 8
    np.testing.assert_array_equal(np.concatenate([found["low states"], found["high states"][::-1]]), found["states"])


@pytest.mark.parametrize("dtype", [FLOAT, HALF], ids=repr)
def test_dropout(dtype):
    """
    The share kept, the scale, what the mask depends on; with whole rows dropped by shaped_dropout.
    """
    graph, prog = new_graph(), program.Sequence()
    x, g = graph.add_variable(dtype, (200, 30), "linear"), graph.add_variable(dtype, (200, 30), tile=1)
    seed, reference = graph.add_variable(UNSIGNED_INT, (2,), tile=0), graph.add_variable(FLOAT, (200, 30), "linear")
    reads = {
        "x": poprand.dropout(graph, seed, 3, x, reference, 0.75, 1 / 0.75, prog),
        "g": poprand.dropout(graph, seed, 3, g, reference, 0.75, 2.0, prog, False),
    }
    reads["rows"] = poprand.shaped_dropout(graph, seed, 3, x, reference[:, :1], 0.5, 2.0, prog)
    for name, p in (("all", 1.0), ("none", 0.0)):
        reads[name] = poprand.dropout(graph, None, 3, x, reference, p, 1.0, prog)
    assert graph.get_tile_mapping(reads["x"]) == graph.get_tile_mapping(reference)
    assert graph.get_tile_mapping(reads["g"]) == graph.get_tile_mapping(g)
    data = (np.random.default_rng(0).standard_normal((200, 30)) + 9).astype(dtype.numpy)
    found = run(graph, prog, {x: data, g: data, seed: SEED}, reads, (pc.Engine,))
    kept = found["x"] != 0
    np.testing.assert_array_equal(found["x"], np.where(kept, (data.astype(np.float32) * np.float32(1 / 0.75)).astype(dtype.numpy), 0))
    np.testing.assert_array_equal(found["g"], np.where(kept, data + data, 0))
    assert abs(kept.mean() - 0.75) < 5 * 0.433 / 6000**0.5
    rows = found["rows"] != 0
    assert set(rows.sum(axis=1)) == {0, 30}
    np.testing.assert_array_equal(found["rows"], np.where(rows, data + data, 0))
    np.testing.assert_array_equal(found["all"], data)
    assert not found["none"].any()


def test_mistakes():
    """
    Seeds, probabilities, ranges, types: refused at the call, and nothing is added.
    """
    graph, prog = new_graph(), program.Sequence()
    r, seed = graph.add_variable(FLOAT, (4, 3), "linear"), graph.add_variable(UNSIGNED_INT, (2,), tile=0)
    unmapped = graph.add_variable(FLOAT, (3,))
    for kind, call in (
        (errors.ShapeError, lambda: poprand.uniform(graph, r, 0, r, FLOAT, 0, 1, prog)),
        (errors.ElementTypeError, lambda: poprand.set_seed(graph, r[0, :2], 0, prog)),
        (errors.ValueRangeError, lambda: poprand.set_seed(graph, seed, -1, prog)),
        (errors.ValueRangeError, lambda: poprand.uniform(graph, seed, 2**32, r, FLOAT, 0, 1, prog)),
        (errors.ValueRangeError, lambda: poprand.uniform(graph, seed, 0, r, FLOAT, 2, 1, prog)),
        (errors.ValueRangeError, lambda: poprand.uniform(graph, seed, 0, r, INT, 0.2, 0.8, prog)),
        (errors.ValueRangeError, lambda: poprand.uniform(graph, seed, 0, r, INT, 0, 2**31, prog)),
        (errors.ValueRangeError, lambda: poprand.uniform(graph, seed, 0, r, HALF, 0, 1e6, prog)),
        (errors.ElementTypeError, lambda: poprand.normal(graph, seed, 0, r, INT, 0, 1, prog)),
        (errors.ValueRangeError, lambda: poprand.normal(graph, seed, 0, r, FLOAT, 0, -1, prog)),
        (errors.ValueRangeError, lambda: poprand.truncated_normal(graph, seed, 0, r, FLOAT, 0, 1, 0, prog)),
        (errors.ValueRangeError, lambda: poprand.log_uniform(graph, seed, 0, r, FLOAT, 0, 1, prog)),
        (errors.ValueRangeError, lambda: poprand.bernoulli(graph, seed, 0, r, FLOAT, 1.1, prog)),
        (errors.ShapeError, lambda: poprand.dropout(graph, seed, 0, r, r[:2], 0.5, 2, prog)),
        (errors.ShapeError, lambda: poprand.shaped_dropout(graph, seed, 0, r, r[:2], 0.5, 2, prog)),
        (errors.GraphError, lambda: poprand.uniform(graph, seed, 0, r[:1].broadcast(2, 0), FLOAT, 0, 1, prog)),
        (errors.TileMappingError, lambda: poprand.uniform(graph, seed, 0, unmapped, FLOAT, 0, 1, prog)),
        (errors.ShapeError, lambda: poprand.set_hw_seeds(graph, seed, prog)),
    ):
        with pytest.raises(kind, match="try: "):
            call()
    assert not prog.programs
