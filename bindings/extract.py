"""Finds the vertex classes of a file: their names, instantiations and members' names. What those are, the compiler says later.

A name too many costs nothing, since generated code asks the compiler for each whether it is a data member.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from popcore.bindings.candidate import Candidate
from popcore.bindings.counters import Counters
from popcore.bindings.source import Edit, Text
from popcore.errors import CodeletError

_BASES = re.compile(r"\w*Vertex\w*")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_WAITS = re.compile(rb"(?<!asm )(?<!asm__ )\bvolatile\b|\batomic\w*\b|__atomic_|__sync_")


@dataclass
class Found:
    """What a file has, and what has to change in its text."""

    candidates: list[Candidate] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    assembly: dict[str, tuple[str, int]] = field(default_factory=dict)  # function that stands for it -> file and line
    counters: int = 0  # that the edits put into it


@dataclass
class _Class:
    namespace: tuple[str, ...]
    name: str
    generic: str  # "", "template" or "specialisation"
    bases: str
    row: int
    span: tuple[int, int]  # bytes
    fields: list[tuple[str, str]]


@functools.cache
def _parser() -> Any:
    try:
        import tree_sitter
        import tree_sitter_cpp
    except ImportError:
        raise CodeletError("C++ codelets need the packages tree-sitter and tree-sitter-cpp", "pip install 'popcore[cpp]'") from None
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))


def extract(text: Text, main_file: str, checked: bool = False, first_counter: int = -1) -> Found:
    """Read the user's lines of a file.

    Args:
        checked: Indices are going to be checked: those of which only the address is taken are marked as not to be.
        first_counter: Number of the first counter that is put into it; -1: none is.

    Raises: CodeletError: inline assembly outside of functions, which nothing can stand for.
    """
    reader = _Reader(text, main_file, checked)
    root = _parser().parse(text.masked).root_node
    reader.read(root, (), "")
    found = reader.found
    found.candidates = reader.candidates()
    if first_counter >= 0:
        counters = Counters(first_counter)
        counters.read(root)
        found.edits += counters.edits
        found.counters = counters.used
    return found


class _Reader:
    def __init__(self, text: Text, main_file: str, checked: bool) -> None:
        self.text, self.main_file, self.checked = text, main_file, checked
        self.found = Found()
        self.classes: list[_Class] = []
        self.instances: list[tuple[tuple[str, ...], str, int, Any]] = []

    def read(self, node: Any, namespace: tuple[str, ...], generic: str) -> None:
        """Visit declarations; bodies of functions are only searched for what has to change."""
        kind = node.type
        if kind == "namespace_definition":
            name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
            inner = (*namespace, *(_text(name).split("::") if name is not None else [""]))
            for child in body.named_children if body is not None else ():
                self.read(child, inner, "")
            return
        if kind == "template_declaration":
            parameters = node.child_by_field_name("parameters")
            generic = "specialisation" if parameters is not None and not parameters.named_children else "template"
        elif kind == "template_instantiation":
            self._read_instance(node, namespace)
            return
        elif kind in ("class_specifier", "struct_specifier"):
            self._read_class(node, namespace, generic)
            generic = ""
        elif kind == "sized_type_specifier":
            self._narrow(node)
            return
        elif kind == "gnu_asm_expression":
            self._replace_assembly(node)
            return
        elif kind == "pointer_expression" and self.checked:
            self._mark_address(node)
        for child in node.children:
            if child.child_count:
                self.read(child, namespace, generic if kind in ("template_declaration", "declaration") else "")

    def _read_class(self, node: Any, namespace: tuple[str, ...], generic: str) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            return
        bases = " ".join(_text(c) for c in node.named_children if c.type == "base_class_clause")
        fields = [pair for child in body.named_children if child.type == "field_declaration" for pair in self._members(child)]
        self.classes.append(_Class(namespace, _text(name), generic, bases, node.start_point[0], (node.start_byte, node.end_byte), fields))

    def _members(self, node: Any) -> Iterator[tuple[str, str]]:
        if any(c.type == "storage_class_specifier" and _text(c) == "static" for c in node.children):
            return
        declared = node.child_by_field_name("type")
        kind = _text(declared) if declared is not None else ""
        for declarator in node.children_by_field_name("declarator"):
            name = _declared_name(declarator)
            if name is None:
                continue
            yield name, kind
            if re.search(r"\bsize_t\b", kind):
                self._edit(declared, re.sub(rb"\b(?:std\s*::\s*)?size_t\b", b"unsigned", declared.text))

    def _read_instance(self, node: Any, namespace: tuple[str, ...]) -> None:
        kind = node.child_by_field_name("type") or next((c for c in node.named_children if c.type in ("class_specifier", "struct_specifier")), None)
        if kind is None:
            return
        name = kind.child_by_field_name("name") if kind.type in ("class_specifier", "struct_specifier") else kind
        if name is not None:
            self.instances.append((namespace, _text(name), node.start_point[0], node))

    def _narrow(self, node: Any) -> None:
        """A ``long`` in the codelet's own file becomes the 32 bits that it has on a tile."""
        words = node.text.split()
        if words.count(b"long") == 1 and b"double" not in words and self.text.at(node.start_point[0]).file == self.main_file:
            self._edit(node, b"unsigned int" if b"unsigned" in words else b"int")

    def _mark_address(self, node: Any) -> None:
        """``&x[i]`` is no access."""
        argument = node.child_by_field_name("argument")
        while argument is not None and argument.type == "parenthesized_expression":
            argument = argument.named_children[0]
        if argument is not None and argument.type == "subscript_expression" and node.text.startswith(b"&"):
            indexed = argument.child_by_field_name("argument")
            self.found.edits += [Edit(indexed.start_byte, indexed.start_byte, b" ::popcore::unchecked("), Edit(indexed.end_byte, indexed.end_byte, b")")]

    def _replace_assembly(self, node: Any) -> None:
        if _does_nothing(node):
            self._edit(node, b"static_cast<void>(0)")
            return
        where = self.text.at(node.start_point[0])
        parent = node.parent
        while parent is not None and parent.type not in ("compound_statement", "function_declarator", "translation_unit", "declaration_list"):
            parent = parent.parent
        if parent is not None and parent.type == "function_declarator":
            return  # the symbol's name of a declaration
        if parent is None or parent.type != "compound_statement":
            raise CodeletError(
                f"{where.file}:{where.number}: inline assembly is not emulated: {_text(node)[:60]}", "guard it with #ifdef __IPU__ and give a C++ version"
            )
        name = f"popcore_assembly_{len(self.found.assembly)}"
        self.found.assembly[name] = (where.file, where.number)
        self._edit(node, b"::" + name.encode() + b"()")

    def _edit(self, node: Any, text: bytes) -> None:
        self.found.edits.append(Edit(node.start_byte, node.end_byte, text))

    def candidates(self) -> list[Candidate]:
        """The types that may be codelets; explicit instantiations of their templates are taken out of the text."""
        by_name: dict[str, list[_Class]] = {}
        for each in self.classes:
            by_name.setdefault(each.name.split("<")[0], []).append(each)
        vertices = {name for name in by_name if _is_vertex(name, by_name, frozenset())}
        made: dict[tuple[tuple[str, ...], str], Candidate] = {}
        waiting = self._waiting(by_name)

        def add(namespace: tuple[str, ...], kind: str, row: int) -> None:
            base = kind.split("<")[0].rsplit("::", 1)[-1].strip()
            family: set[str] = set()
            fields = _fields_of(base, by_name, family)
            where = self.text.at(row)
            long = tuple(name for name, declared in fields.items() if re.search(r"\blong\b", declared) and not re.search(r"\blong\s+(long|double)\b", declared))
            made.setdefault(
                (namespace, re.sub(r"\s", "", kind)), Candidate(namespace, kind, where.file, where.number, tuple(fields), long, bool(family & waiting))
            )

        for each in self.classes:
            if each.generic != "template" and each.name.split("<")[0] in vertices:
                add(each.namespace, each.name, each.row)
        for namespace, kind, row, node in self.instances:
            base = kind.split("<")[0].rsplit("::", 1)[-1].strip()
            if base in vertices:
                own = next((c for c in by_name[base] if c.generic == "template"), None)
                add(namespace, kind, own.row if own is not None else row)
                self._edit(node, b"")
        return list(made.values())

    def _waiting(self, by_name: dict[str, list[_Class]]) -> set[str]:
        """Classes with what waiting for another worker needs; all of them if functions outside have it."""
        text, outside = self.text.masked, self.text.masked
        for each in sorted(self.classes, key=lambda c: -c.span[0]):
            outside = outside[: each.span[0]] + outside[each.span[1] :]
        if _WAITS.search(outside):
            return set(by_name)
        return {name for name, classes in by_name.items() if any(_WAITS.search(text, *c.span) for c in classes)}


def _text(node: Any) -> str:
    return str(node.text.decode("utf-8", "replace"))


def _does_nothing(node: Any) -> bool:
    """Whether assembly has no instruction, as a barrier for the compiler has none, or but ``nop``, which only takes time."""
    template = node.child_by_field_name("assembly_code")
    words = re.sub(r'R?"\(?|\)?"|\\[nrt]|;', " ", _text(template)) if template is not None else "?"
    return set(words.split()) <= {"nop"}


def _declared_name(node: Any) -> str | None:
    """The name that a declarator declares; None for a member function."""
    while node is not None and node.type != "field_identifier":
        if node.type == "function_declarator" and node.child_by_field_name("declarator").type != "parenthesized_declarator":
            return None
        inner = node.child_by_field_name("declarator")
        node = inner if inner is not None else next((c for c in node.named_children if c.type.endswith(("declarator", "identifier"))), None)
    return _text(node) if node is not None else None


def _is_vertex(name: str, by_name: dict[str, list[_Class]], seen: frozenset[str]) -> bool:
    for each in by_name.get(name, []):
        for base in _IDENTIFIER.findall(each.bases):
            if _BASES.fullmatch(base) or (base in by_name and base not in seen and base != name and _is_vertex(base, by_name, seen | {name})):
                return True
    return False


def _fields_of(name: str, by_name: dict[str, list[_Class]], seen: set[str]) -> dict[str, str]:
    """Names of members of a class and of its bases, and how they are declared."""
    seen.add(name)
    found: dict[str, str] = {}
    for each in by_name.get(name, []):
        for base in _IDENTIFIER.findall(each.bases):
            if base in by_name and base not in seen:
                found.update(_fields_of(base, by_name, seen))
    for each in by_name.get(name, []):
        found.update({n: kind for n, kind in each.fields if n not in found})
    return found


def generated_names(candidates: Sequence[Candidate]) -> list[str]:
    """Every member name of the candidates, once."""
    return list(dict.fromkeys(name for each in candidates for name in each.fields))
