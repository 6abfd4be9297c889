"""Which vertex made the first number that is none: the option ``debug.first_nan``. Looks at what every compute set has written."""

from __future__ import annotations

import numpy as np

from popcore.codelet import Codelet, Field, NativeCodelet
from popcore.debug import Site
from popcore.engine.device import Arena
from popcore.engine.faults import place_of
from popcore.engine.fields import Span, rows_of_matrices, spans_of
from popcore.engine.jobs import expand
from popcore.engine.outcome import vertex_at
from popcore.engine.places import Places
from popcore.engine.replay import first_store
from popcore.errors import EngineError, NonFiniteError
from popcore.executable import Executable
from popcore.executable.opcodes import Batch, Phase
from popcore.kernels.behaviour import Arithmetic
from popcore.kernels.randomness import key_of_call
from popcore.program.printing import vertex_line
from popcore.types import Array

_SATURATED = 0x7BFF  # a half's largest
_EXPONENT = {2: 0x7C00, 4: 0x7F800000}


def wrong(bits: Array) -> Array:
    """Which floats or halves, as unsigned integers, are NaN, infinite, or of a half saturated."""
    exponent = _EXPONENT[bits.itemsize]
    found: Array = bits & exponent == exponent
    return found | (bits & 0x7FFF == _SATURATED) if bits.itemsize == 2 else found


class FirstNaN:
    """A watcher of phases, see ``linker.Watcher``.

    Args:
        seed: Of stochastic rounding.
        ieee: Whether denormals are kept.

    An Output is looked at as a whole; of an InOut, and of state, what it held before is not new.
    """

    def __init__(self, executable: Executable, arena: Arena, places: Places, seed: int, ieee: bool) -> None:
        self._executable, self._places, self._seed, self._ieee = executable, places, seed, ieee
        whole = arena.by_replica()
        self._memory: Array = whole[:, : whole.shape[1] // 8 * 8]
        self._written: dict[int, dict[tuple[int, bool], _Elements]] = {}
        self._before: dict[int, Array] = {}

    def phases(self) -> Array:
        """Which phases there is something to look at in: bool[phases]."""
        floats = np.array([any(_is_float(field) and field.writes for field in codelet.fields) for codelet in self._executable.codelets], bool)
        batches = self._executable.batches
        seen = np.concatenate(([0], np.cumsum(floats[batches[:, Batch.CODELET]])))
        begin, end = self._executable.phases[:, Phase.BATCH_BEGIN], self._executable.phases[:, Phase.BATCH_END]
        return np.asarray(seen[np.maximum(begin, end)] > seen[begin])

    def before(self, phase: int) -> None:
        """Keep what fields hold that the phase may change."""
        if phase not in self._written:
            self._written[phase] = _written(self._executable, phase)
        self._before = {width: self._view(width)[:, each.at].copy() for (width, new), each in self._written[phase].items() if not new}

    def after(self, phase: int, sequence: int, arithmetic: Arithmetic) -> EngineError | None:
        """The first of a replica, tile, codelet and vertex, in this order."""
        found: list[tuple[int, int, Span, int]] = []
        for (width, new), elements in self._written[phase].items():
            if width in _EXPONENT:
                bad = wrong(self._view(width)[:, elements.at]) & elements.floats
                if not new:
                    bad &= ~wrong(self._before[width])
                for replica in np.flatnonzero(bad.any(axis=1))[:1].tolist():
                    where = int(bad[replica].argmax())
                    found.append((replica, *elements.place(where)))
        if not found:
            return None
        replica, _, span, element = min(found, key=lambda each: each[:2])
        return self._error(phase, sequence, arithmetic, replica, span, element)

    def _view(self, width: int) -> Array:
        return self._memory.view(f"u{width}")

    def _error(self, phase: int, sequence: int, arithmetic: Arithmetic, replica: int, span: Span, element: int) -> EngineError:
        executable = self._executable
        codelet: Codelet = executable.codelets[int(executable.batches[span.batch, Batch.CODELET])]
        vertex, tile = vertex_at(executable, span.batch, span.position)
        field = codelet.fields[span.field]
        width, at = field.dtype.nbytes, span.start + element * field.dtype.nbytes
        value = self._memory[replica, at : at + width].view(field.dtype.numpy)[0]
        site, worker = Site(*codelet.site), 0
        fields = spans_of(executable, span.batch, span.position)
        if not isinstance(codelet, NativeCodelet):
            number = int(executable.vertex_ids[vertex])
            arrays = [[self._held(phase, replica, each, codelet.fields[each.field]) for each in fields if each.field == i] for i in range(len(codelet.fields))]

            def key(identity: str, worker: int) -> int:
                return key_of_call(self._seed, identity, sequence, replica, tile, number, worker)

            shapes = rows_of_matrices(executable, span.batch, span.position)
            site, worker = first_store(codelet, arrays, shapes, arithmetic, key, self._ieee) or (site, worker)
        place = place_of(executable, phase, codelet, vertex, tile, worker, replica)
        what, facts = self._places.describe(phase, at, at + width - 1)
        what = f"{field.name}[{element}], {what}" if self._places.known else f"{field.name}[{element}]"
        kind = "nan" if np.isnan(value) else "infinity" if np.isinf(value) else "saturated"
        inputs = self._inputs(phase, replica, codelet, fields)
        return NonFiniteError(
            f"{vertex_line(place)}\n  wrote {value} to {what}: the first that is no finite number\n  {inputs}\n  at {site.file}:{site.line}",
            code=kind, codelet=place.codelet, tile=tile, vertex=place.vertex, compute_set=place.compute_set, worker=place.worker, file=site.file, line=site.line,
            replica=place.replica, field=field.name, element=element, value=value, inputs=inputs, **facts,
        )  # fmt: skip

    def _held(self, phase: int, replica: int, span: Span, field: Field) -> Array:
        """What a field held before the phase."""
        width = field.dtype.nbytes
        values = self._memory[replica, span.start : span.start + span.elements * width].copy()
        if field.direction == "out":
            values[:] = 0  # it is undefined
        elif field.writes:
            kept = self._written[phase][width, False]
            first = kept.first_of(span)
            values = self._before[width][replica, first : first + span.elements].copy().view(np.uint8)
        return np.asarray(values.view(np.uint8 if field.dtype.kind == "quarter" else field.dtype.numpy))

    def _inputs(self, phase: int, replica: int, codelet: Codelet, spans: list[Span]) -> str:
        """What it read, as far as that tells where the number came from."""
        told = []
        for number, field in enumerate(codelet.fields):
            if _is_float(field) and field.direction != "out":
                held = [self._held(phase, replica, span, field) for span in spans if span.field == number]
                values = np.concatenate([np.zeros(0, field.dtype.numpy), *held])
                bad = np.flatnonzero(wrong(values.view(f"u{values.itemsize}")))
                if len(bad):
                    told.append(f"{field.name}[{bad[0]}] was {values[bad[0]]}" + (f" and {len(bad) - 1} more" if len(bad) > 1 else ""))
        return "its inputs: " + ", ".join(told) if told else "its inputs were finite"


class _Elements:
    """Elements of one width that a phase may write."""

    def __init__(self, spans: list[Span], order: list[int], floats: list[bool], width: int) -> None:
        self.spans, self._order = spans, order
        counts = np.array([span.elements for span in spans], np.int64)
        self._first = np.cumsum(counts) - counts
        owner, element = expand(np.zeros(len(spans), np.int64), counts)
        self.at = np.array([span.start for span in spans], np.int64)[owner] // width + element
        self.floats = np.array(floats, bool)[owner]

    def place(self, where: int) -> tuple[int, Span, int]:
        """Of an element: its rank among all vertices, its span, its number in the field's piece."""
        number = int(np.searchsorted(self._first, where, "right")) - 1
        return self._order[number], self.spans[number], where - int(self._first[number])

    def first_of(self, span: Span) -> int:
        return int(self._first[self.spans.index(span)])


def _is_float(field: Field) -> bool:
    return field.dtype.kind in ("float", "half")


def _written(executable: Executable, phase: int) -> dict[tuple[int, bool], _Elements]:
    """What the vertices of a phase may write, by width of an element and whether what it held before is lost."""
    found: dict[tuple[int, bool], list[tuple[tuple[int, int, int], Span, bool]]] = {}
    begin, end = executable.phases[phase, [Phase.BATCH_BEGIN, Phase.BATCH_END]].tolist()
    for batch in range(begin, end):
        row = executable.batches[batch]
        codelet, rows = executable.codelets[int(row[Batch.CODELET])], int(row[Batch.ROWS_COUNT])
        first = int(row[Batch.TILES_BEGIN])
        rank = int(row[Batch.ORIGIN]) - 1 if row[Batch.ORIGIN] else batch
        for position in range(first * rows, (first + int(row[Batch.TILES_COUNT])) * rows):
            vertex, tile = vertex_at(executable, batch, position)
            for span in spans_of(executable, batch, position):
                field = codelet.fields[span.field]
                if field.writes and span.elements:
                    key = (field.dtype.nbytes, field.direction == "out")
                    found.setdefault(key, []).append(((tile, rank, int(executable.vertex_ids[vertex])), span, _is_float(field)))
    ranks = sorted({each[0] for parts in found.values() for each in parts})
    number = {rank: i for i, rank in enumerate(ranks)}
    made = {}
    for key, parts in found.items():
        parts.sort(key=lambda each: each[0])
        made[key] = _Elements([p[1] for p in parts], [number[p[0]] for p in parts], [p[2] for p in parts], key[0])
    return made
