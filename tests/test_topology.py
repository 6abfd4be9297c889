"""Are routes and rings those of the machines, and do they take the time that was measured?"""

from collections import Counter

import numpy as np
import pytest

import popcore as pc
from popcore import errors
from popcore.compiler.links import TURN_SECONDS, Flow, barrier_lag_seconds, busiest_seconds, latency_seconds, link_loads
from popcore.topology import MIRRORED, SERPENT, Link, link_sets, ring_order, route, wiring_of


def kinds(links):
    return [link.kind for link in links]


def test_a_route_crosses_its_rung_and_follows_the_rail():
    """
    A machine is two rungs; the partner's links are wider when the traffic ends there.
    """
    target = pc.Device("M2000").target
    assert route(target, 0, 0) == ()
    assert route(target, 0, 1) == (Link("rung", 0, 1),)
    assert route(target, 0, 2) == (Link("rail", 0, 2),)
    assert route(target, 0, 3) == (Link("cross", 0, 1), Link("rail", 1, 3))
    assert route(target, 3, 0) == (Link("cross", 3, 2), Link("rail", 2, 0))


def test_a_torus_goes_the_shorter_way_and_a_ladder_has_one():
    torus, ladder = pc.Device("POD64").target, pc.Device("POD16").target
    assert kinds(route(torus, 0, 62)) == ["rail"]
    assert kinds(route(torus, 0, 32)) == ["rail"] * 16
    assert kinds(route(ladder, 0, 14)) == ["rail"] * 7
    assert kinds(route(torus.with_ipus(16), 0, 14)) == ["rail"] * 7, "a part of a torus is open"


def test_pods_are_joined_by_gateways():
    target = pc.Device("POD256").target
    assert route(target, 5, 64 + 6) == (Link("gateway out", 1, 1), Link("gateway in", 17, 17), Link("cross", 69, 68), Link("rail", 68, 70))


def test_cards_reach_no_further_than_their_links():
    """
    16 chips; more may be declared, and work for themselves.
    """
    target = pc.Device("C2", num_ipus=64).target
    assert route(target, 0, 15)
    with pytest.raises(errors.CompileError, match=r"IPU 3 sends to IPU 17.*16 IPUs.*no GW-Links"):
        route(target, 3, 17)


@pytest.mark.parametrize("members", [range(16), range(64), range(0, 64, 2), range(128)])
def test_a_ring_visits_everyone_once(members):
    target = pc.Device("POD256").target
    order = ring_order(target, list(members))
    assert sorted(order) == list(range(len(members)))


def test_neighbours_of_a_ring_are_one_link_apart():
    """
    Up one rail and down the other; each bundle carries one flow.
    """
    target = pc.Device("POD64").target
    order = ring_order(target, list(range(64)))
    hops = [route(target, a, b) for a, b in zip(order, order[1:] + order[:1], strict=True)]
    assert all(len(h) == 1 for h in hops)
    assert len({h[0] for h in hops}) == 64


def test_two_helices_use_every_link_of_a_torus_alike():
    """
    Along a rung, up a rail, along the next rung; the mirror image begins on the other rail. Both ways round both, each rail bundle carries one
    ring and each rung, twice as wide, two.
    """
    target = pc.Device("POD64").target
    first = ring_order(target, range(64), 1, SERPENT)
    assert first[:8] == (0, 1, 3, 2, 4, 5, 7, 6)
    assert ring_order(target, range(64), 1, MIRRORED) == tuple(ipu ^ 1 for ipu in first)
    used = Counter()
    for pattern in (SERPENT, MIRRORED):
        order = ring_order(target, range(64), 1, pattern)
        for a, b in zip(order, order[1:] + order[:1], strict=True):
            for link in (*route(target, a, b), *route(target, b, a)):
                used[link] += 1
    assert Counter((link.kind, count) for link, count in used.items()) == {("rail", 1): 128, ("rung", 2): 64}


def test_what_is_no_whole_torus_has_no_helices():
    target = pc.Device("POD64").target
    for part in (range(32), range(0, 64, 2)):
        assert ring_order(target, list(part), 1, SERPENT) == ring_order(target, list(part))
    assert ring_order(target, list(range(0, 64, 4)), 4) == tuple(range(16)), "rails are closed: in order"
    assert ring_order(pc.Device("POD16").target, [0, 4, 8, 12], 4) == (0, 2, 3, 1), "and where they are not, up and down again"


def test_sets_are_pods_or_else_rungs():
    """
    Of the same size each, or nobody has a partner.
    """
    target = pc.Device("POD256").target
    assert [len(each) for each in link_sets(target, list(range(256)))] == [64] * 4
    assert link_sets(target, [0, 1, 2, 3]) == ((0, 1), (2, 3))
    assert link_sets(target, [0, 1, 2]) == ((0,), (1,), (2,))
    assert link_sets(target, [0, 4, 64, 68], 4) == ((0, 1), (2, 3))


def test_only_a_whole_torus_of_single_ipus_is_twisted():
    pod, two = pc.Device("POD64").target, pc.Device("POD128").target
    assert wiring_of(pod, range(64)).twisted
    assert wiring_of(two, range(64)).twisted
    assert wiring_of(two, range(128)).domains == 2
    assert not wiring_of(pod, range(32)).twisted
    assert not wiring_of(pod, range(0, 64, 2), 2).twisted
    assert not wiring_of(pc.Device("POD16").target, range(16)).closed
    assert (pod.ipu_link_configuration, pc.Device("POD16").target.ipu_link_configuration) == ("barley_twist", "default")


@pytest.mark.parametrize(("to", "microseconds"), [(2, 0.54), (4, 0.70), (14, 1.499), (15, 1.760), (1, 0.63)])
def test_latency_is_what_was_measured(to, microseconds):
    """
    Rows J-HOP of the published figures: 16 chips in a ladder.
    """
    target = pc.Device("C2", num_ipus=16).target
    assert latency_seconds(route(target, 0, to)) * 1e6 == pytest.approx(microseconds, rel=0.02)


def test_bandwidth_is_what_was_measured():
    """
    Rows J-IPUBW: 55.0 GB/s to the partner, 27.72 along the rail.
    """
    target = pc.Device("C2", num_ipus=16).target
    for to, rate in ((1, 55.0e9), (2, 27.72e9)):
        assert 1e9 / busiest_seconds(target, link_loads(target, [Flow(0, (to,), 1e9)])[1]) == pytest.approx(rate, rel=0.02)


def test_flows_over_one_bundle_share_it():
    target = pc.Device("POD16").target
    alone, shared = (busiest_seconds(target, link_loads(target, flows)[1]) for flows in ([Flow(0, (4,), 1e6)], [Flow(0, (4,), 1e6), Flow(2, (6,), 1e6)]))
    assert shared == pytest.approx(2 * alone)
    assert link_loads(target, []) == (0.0, {})
    assert busiest_seconds(target, {}) == 0.0


def test_tiles_take_turns_at_every_bundle_of_the_way():
    """
    Rows J-P2PLL: 1,216 tiles of a chip send a word each to its partner, along a rail, and across and along: 2.5, 2.5 and 6.0 us.
    """
    target = pc.Device("C2", num_ipus=16).target
    for to, microseconds in ((1, 2.521), (2, 2.524), (3, 5.989)):
        assert link_loads(target, [Flow(0, (to,), 4 * 1216, 1216)])[0] * 1e6 == pytest.approx(microseconds, rel=0.25)
    alone, behind = (link_loads(target, flows)[0] for flows in ([Flow(0, (4,), 4)], [Flow(0, (4,), 4), Flow(2, (4,), 400, 100)]))
    assert behind - alone == pytest.approx(100 * TURN_SECONDS)


def test_what_one_tile_receives_is_in_line_already():
    """
    Of a gather from two chips over one bundle the turns of one count.
    """
    target = pc.Device("C2", num_ipus=16).target
    flows = [Flow(source, (0,), 4000, 1000) for source in (2, 4)]
    anywhere, one_tile = (link_loads(target, flows, one_tile_receives=one)[0] for one in (False, True))
    assert anywhere - one_tile == pytest.approx(1000 * TURN_SECONDS)


@pytest.mark.parametrize(("source", "to", "microseconds"), [(14, 15, 0.823), (9, 8, 0.742), (14, 12, 0.706), (2, 14, 1.383), (15, 0, 1.734), (13, 2, 1.382)])
def test_chips_far_from_the_first_hear_of_a_barrier_later(source, to, microseconds):
    """
    Jia et al. 2019, figure 4.4, which has more pairs than the rows that the constants are of.
    """
    target = pc.Device("C2", num_ipus=16).target
    seconds = link_loads(target, [Flow(source, (to,), 4)])[0]
    assert seconds * 1e6 == pytest.approx(microseconds, rel=0.05)
    assert seconds == latency_seconds(route(target, source, to)) + barrier_lag_seconds(target, source, to)


def test_thousands_of_ipus_are_planned_at_once():
    """
    A declared system of any size is a target for the cost model.
    """
    target = pc.Device("POD256", num_ipus=4096).target
    order = ring_order(target, list(range(4096)))
    latency, load = link_loads(target, [Flow(a, (b,), 1e6) for a, b in zip(order, order[1:] + order[:1], strict=True)])
    assert np.isfinite(busiest_seconds(target, load))
    assert latency > 2e-6
