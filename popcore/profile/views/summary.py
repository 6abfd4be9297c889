"""The profile as the text that people paste."""

from __future__ import annotations

import numpy as np

from popcore.debug import plain
from popcore.profile.profile import CodeletProfile, Profile

STEPS_SHOWN = 8
_SAID = {"user": "the user's", "formula": "formula", "automatic": "automatic", "stopgap": "by size alone"}


def summary(profile: Profile) -> str:
    """Cycles by kind, step and codelet; memory of the fullest tile; wall time apart."""
    target, total = profile.target, max(profile.total_cycles, 1)
    steps = [step for step in profile.steps if step.cycles]
    lines = [
        f"{plain(target.name)}: {f'{profile.replicas} replicas of ' if profile.replicas > 1 else ''}{target.num_ipus} IPU x {target.tiles_per_ipu} tiles, {target.clock_hz / 1e9:.3f} GHz",
        f"modelled: {profile.total_cycles:,} cycles = {profile.device_seconds * 1e6:,.3f} us of device time in {profile.runs} runs",
        "",
        "cycles by kind",
        *(f"  {kind:<12}{cycles:>16,} {100 * cycles / total:6.1f} %" for kind, cycles in profile.cycles_by_kind.items()),
        "",
        "cycles by step",
        *(f"  {plain(step.name)[:34]:<34}{step.executions:>9,} x{step.cycles:>16,} {100 * step.cycles / total:6.1f} %" for step in steps[:STEPS_SHOWN]),
    ]
    if len(steps) > STEPS_SHOWN:
        rest = sum(step.cycles for step in steps[STEPS_SHOWN:])
        lines.append(f"  {f'{len(steps) - STEPS_SHOWN} more':<34}{'':>11}{rest:>16,} {100 * rest / total:6.1f} %")
    if profile.codelets:
        lines += ["", "codelets"]
        lines += [f"  {plain(c.name)[:34]:<34}{c.vertices:>9,} vertices{c.worker_cycles:>16,} worker cycles, {_origin(c)}" for c in profile.codelets.values()]
    if profile.collectives:
        lines += ["", "collectives, each time"]
        lines += [
            f"  {plain(c.name)[:24]:<24} {c.method[:23]:<23}{c.executions:>6,} x{c.cycles:>12,} cycles {c.bytes_on_links_per_replica:>13,} B a replica"
            for c in profile.collectives
        ]
    used = profile.memory.total
    fullest = int(np.argmax(used))
    parts = ", ".join(f"{plain(name)} {int(sizes[fullest]):,}" for name, sizes in profile.memory.by_category.items() if sizes[fullest])
    lines += [
        "",
        f"memory: fullest is tile {fullest}, {int(used[fullest]):,} of {target.bytes_per_tile:,} B ({parts})",
        "moved: " + ", ".join(f"{n:,} B {by}" for n, by in _moved(profile)),
        *_links(profile),
        f"emulator: {profile.wall_seconds * 1e3:,.1f} ms of wall time on this machine",
    ]
    return "\n".join(lines)


def _origin(codelet: CodeletProfile) -> str:
    """Whose word its cycles are."""
    said = " and ".join(_SAID[name] for name in codelet.cycles_from)
    return f"{said}, counted" if codelet.counted else said


def _links(profile: Profile) -> tuple[str, ...]:
    if not profile.links:
        return ()
    first = profile.links[0]
    busy = f"{first.kind} {first.source} -> {first.target}, {first.bytes:,} B in {first.busy_seconds * 1e6:,.1f} us"
    return (f"links: {len(profile.links)} bundles of {profile.replicas * profile.target.num_ipus} IPUs used; busiest is {busy}",)


def _moved(profile: Profile) -> tuple[tuple[int, str], ...]:
    moved = profile.bytes
    return (moved.exchange, "exchange"), (moved.ipu_links, "IPU-Links"), (moved.host, "host"), (moved.streaming_memory, "Streaming Memory")
