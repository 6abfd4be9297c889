"""The C++ that is put after a codelet's source: it asks the compiler about members, and makes tables and drivers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from popcore.bindings.candidate import Candidate
from popcore.bindings.extract import Found, generated_names

ORIGIN = "popcore-generated"
"""The file name that the compiler gives to errors in generated text."""

FLAT = 200
"""Counters up to which all that a codelet calls is written into one function for the estimate of its cycles."""


def declarations(found: Found) -> str:
    """What goes before the source, whose first line says where it comes from."""
    return "".join(f"void {name}();\n" for name in found.assembly)


def tables(candidates: Sequence[Candidate], described: Sequence[int], driven: Collection[int], prefix: str = "", first: int = 0, counters: int = 0) -> str:
    """The text after the source.

    Args:
        candidates: Of the file.
        described: Numbers of those to describe, in the order of the table.
        driven: Numbers of those, among them, to make drivers of.
        prefix: Of the tables' names, where a library has several files.
        first: Added to the numbers that the table tells.
        counters: That the library's sources have.
    """
    chosen = [candidates[i] for i in described]
    return "\n".join(
        [
            f'# 1 "{ORIGIN}"',
            "namespace popcore_generated {",
            *(_has_member(name) for name in generated_names(chosen)),
            "template <class V, class = void> struct has_compute { static constexpr bool value = popcore::TakesWorker<V>::value; };",
            "template <class V> struct has_compute<V, std::void_t<decltype(std::declval<V &>().compute())>> { static constexpr bool value = true; };",
            "}",
            *(_alias(number, each) for number, each in enumerate(chosen)),
            "namespace popcore_generated {",
            *(_type(number, each, counters) for number, each in enumerate(chosen)),
            *_table(chosen, described, driven, prefix, first, counters),
            "}",
            *(
                f"template void popcore::{'written' if counters <= FLAT else 'written_apart'}<{_name(n, each)}>({_name(n, each)} &, unsigned);"
                for n, each in enumerate(chosen)
                if described[n] in driven and counters
            ),
        ]
    )


def _has_member(name: str) -> str:
    return (
        f"template <class V, class = void> struct has_{name} {{ static constexpr bool value = false; }};\n"
        f"template <class V> struct has_{name}<V, std::void_t<decltype(&V::{name})>> "
        f"{{ static constexpr bool value = popcore::Member<decltype(&V::{name})>::is_data; }};"
    )


def _alias(number: int, candidate: Candidate) -> str:
    """A name for the type, given where its arguments are looked up as they were written."""
    opening = "".join(f"namespace {n} {{ " for n in candidate.namespace)
    return f"{opening}using popcore_type_{number} = {candidate.type};{' }' * len(candidate.namespace)}"


def _name(number: int, candidate: Candidate) -> str:
    return "::" + "".join(f"{n}::" for n in candidate.namespace if n) + f"popcore_type_{number}"


def _type(number: int, candidate: Candidate, counters: int) -> str:
    visits = "\n".join(f'    if constexpr (has_{f}<V>::value) visit.template visit<&V::{f}>("{f}");' for f in candidate.fields)
    return (
        f"struct fields_{number} {{\n"
        f"  static constexpr bool threads = {str(candidate.waits).lower()};\n"
        f"  static inline std::uint32_t weights[{counters + 1}] = {{}};\n"
        f"  template <class V, class Visit> static constexpr void each(Visit &visit) {{\n{visits}\n    static_cast<void>(visit);\n  }}\n}};\n"
        f"static constexpr auto table_{number} = popcore::describe_fields<{_name(number, candidate)}, fields_{number}>();"
    )


def _table(chosen: Sequence[Candidate], described: Sequence[int], driven: Collection[int], prefix: str, first: int, counters: int) -> Iterator[str]:
    yield f'extern "C" {{ extern __attribute__((visibility("default"))) const popcore_type {prefix}popcore_types[{len(chosen) + 1}] = {{'
    for number, (index, candidate) in enumerate(zip(described, chosen, strict=True)):
        name = _name(number, candidate)
        driver = f"popcore::drive<{name}, fields_{number}>" if index in driven else "nullptr"
        flags = f"has_compute<{name}>::value ? 0 : popcore::no_compute"
        yield (f"  {{popcore::spelled<{name}>(), table_{number}.fields, {driver}, table_{number}.used, popcore::workers<{name}>(), {flags}, {first + index}}},")
    yield "  {}};"
    yield f'extern __attribute__((visibility("default"))) const popcore_counters {prefix}popcore_type_counters[{len(chosen) + 1}] = {{'
    for number, index in enumerate(described):
        yield f"  {{fields_{number}::weights, {counters}}}," if index in driven and counters else "  {nullptr, 0},"
    yield "  {}};"
    yield f'extern __attribute__((visibility("default"))) const int32_t {prefix}popcore_type_count = {len(chosen)};'
    if not prefix:
        yield 'extern __attribute__((visibility("default"))) const int32_t popcore_abi_version = popcore::abi_version;'
    yield "}"
