"""``popcore info``: the machines there are, or one of them in full."""

from __future__ import annotations

import click

from popcore.errors import UnknownNameError
from popcore.machines import GB, SYSTEMS, System, find_system
from popcore.target import Target

GIB = 2**30


@click.command()
@click.argument("system", required=False)
def info(system: str | None) -> None:
    """List the machines, or show what is known of SYSTEM."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    if system is None:
        for column in ("system", "IPUs", "chip", "tiles", "SRAM, GiB", "clock, GHz", "half, PFLOP/s", "float"):
            table.add_column(column, justify="left" if column in ("system", "chip") else "right", no_wrap=True)
        for known in SYSTEMS:
            table.add_row(*_summary(known))
    else:
        try:
            found, ipus = find_system(system)
        except UnknownNameError as error:
            raise click.BadParameter(str(error), param_hint="SYSTEM") from None
        table.show_header = False
        for what, value in _details(found, Target(found, ipus, found.chip.tiles)):
            table.add_row(what, value)
    Console().print(table)


def _summary(system: System) -> tuple[str, ...]:
    chip, ipus = system.chip, system.num_ipus
    return (
        system.name,
        str(ipus),
        chip.name,
        f"{ipus * chip.tiles:,}",
        f"{ipus * chip.tiles * chip.bytes_per_tile / GIB:,.1f}",
        f"{chip.clock_hz / 1e9:.3f}",
        f"{ipus * chip.peak_half_flops / 1e15:,.2f}",
        f"{ipus * chip.peak_float_flops / 1e15:,.2f}",
    )


def _details(system: System, target: Target) -> list[tuple[str, str]]:
    chip, ipus = system.chip, target.num_ipus
    rows = [
        ("system", target.name),
        ("IPUs", f"{ipus} x {chip.name} ({chip.architecture}), {system.ipus_per_machine} to a machine"),
        ("tiles", f"{target.num_tiles:,}, {chip.tiles:,} to an IPU"),
        ("workers", f"{target.num_tiles * chip.workers:,}, {chip.workers} to a tile"),
        ("clock", f"{chip.clock_hz / 1e9:.3f} GHz"),
        ("SRAM of a tile", f"{chip.bytes_per_tile // 1024} KiB"),
    ]
    rows += [(f"  {r.name}", f"{r.nbytes // 1024} KiB at {r.address:#x}, {'code and data' if r.executable else 'data only'}") for r in chip.memory_regions]
    rows += [
        ("SRAM of all", f"{target.num_tiles * chip.bytes_per_tile / GIB:,.2f} GiB"),
        ("peak, half", _flops(ipus * chip.peak_half_flops)),
        ("peak, float", _flops(ipus * chip.peak_float_flops)),
        (
            "exchange",
            f"{chip.exchange_bytes_per_cycle} B a cycle in and out of a tile, {_rate(target.num_tiles * chip.exchange_bytes_per_cycle * chip.clock_hz)}",
        ),
        ("IPU-Links of a chip", f"{chip.links} x {_rate(chip.link_bytes_per_second)} each way, {system.topology}, {system.link_domain} IPUs together"),
        ("Streaming Memory", f"{system.streaming_bytes // GB} GB a machine, {_rate(system.streaming_bytes_per_second)}" if system.streaming_bytes else "none"),
        ("host", f"{_rate(system.host_bytes_per_second)} a machine"),
    ]
    return rows


def _flops(per_second: int) -> str:
    return f"{per_second / 1e12:,.1f} TFLOP/s" if per_second < 1e15 else f"{per_second / 1e15:,.2f} PFLOP/s"


def _rate(per_second: int) -> str:
    return f"{per_second / GB:,.1f} GB/s" if per_second < 1e12 else f"{per_second / 1e12:,.2f} TB/s"
