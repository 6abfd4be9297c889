"""Families summed up: as rows of a table, and as the table in ``docs/model.md``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.fidelity.figures import Figure, Result, median_error, within

NOTE = Path(__file__).parents[2] / "docs" / "model.md"
BEGIN, END = "<!-- python -m bench.fidelity --note -->\n", "<!-- end of the table -->\n"
HEADERS = ("family", "use", "rows", "median", "worst", "within 25 %")


def rows(found: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    """By family: rows, median and worst error, apart for rows that constants were read from and for the others; all of them last."""
    for name in (*dict.fromkeys(r.family for r in found), "all"):
        for use in ("calibrate", "test"):
            of = [r for r in found if r.figure.use == use and name in (r.family, "all")]
            if of:
                worst = max(of, key=lambda r: abs(r.relative_error))
                shown = f"{100 * worst.relative_error:+.1f} % {worst.figure.id}"
                yield name, use, str(len(of)), f"{100 * median_error(of):.1f} %", shown, f"{100 * within(of, 0.25):.0f} %"


def coverage(found: Sequence[Result], figures: Sequence[Figure]) -> str:
    wanted = [f for f in figures if f.use == "test" and f.id.split("-")[0] not in ("GR", "GE", "M1", "M2", "BP")]
    covered = {r.figure.id for r in found}
    return f"{sum(f.id in covered for f in wanted)} of {len(wanted)} test rows outside of GR, GE, M and BP are produced by a program"


def markdown(found: Sequence[Result], figures: Sequence[Figure]) -> str:
    lines = ["| " + " | ".join(HEADERS) + " |", "|" + "---|" * len(HEADERS), *("| " + " | ".join(row) + " |" for row in rows(found))]
    return "\n".join(lines) + f"\n\n{coverage(found, figures)}.\n"


def table_of(note: str) -> str:
    """The table as it stands in the text of the note."""
    return note.partition(BEGIN)[2].partition(END)[0]


def write(table: str, path: Path = NOTE) -> None:
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    path.write_text(before + BEGIN + table + END + rest.partition(END)[2], encoding="utf-8")
