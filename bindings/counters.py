"""Counters in the source of codelets: one in each part that runs as a whole, a function's body, a loop's, an arm of a branch.

What a counter adds is decided later, by what the compiler makes of its part; until then it adds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from popcore.bindings.source import Edit

MOST = 4000  # of a file; see ``popcore/counters.hpp``
_LOOPS = ("for_statement", "for_range_loop", "while_statement", "do_statement")
_LEAVES = ("break_statement", "continue_statement", "return_statement")


@dataclass
class _Function:
    """One that counts: where its body begins, and its counters, its own first."""

    begin: int
    counters: list[int] = field(default_factory=list)


class Counters:
    """Makes the edits of one file. Counters are numbered from ``first``."""

    def __init__(self, first: int = 0) -> None:
        self.edits: list[Edit] = []
        self.first, self.used = first, 0
        self._function: _Function | None = None

    def read(self, root: Any) -> None:
        """Visit everything; functions that the compiler may evaluate have none."""
        waiting: list[tuple[Any, _Function | None]] = [(root, None)]
        functions: list[_Function] = []
        while waiting:
            node, self._function = waiting.pop()
            if node.type in ("function_definition", "lambda_expression"):
                self._function = self._begin(node)
                functions += [self._function] if self._function is not None else []
            elif self._function is not None:
                self._mark(node)
            waiting += [(child, self._function) for child in reversed(node.children) if child.child_count]
        for each in functions:
            known = ", ".join(f"popcore_w{n} = popcore_count.of({n})" for n in each.counters)
            text = f" ::popcore::Counting popcore_count; const std::uint32_t {known}; popcore_count.add(popcore_w{each.counters[0]});"
            self.edits.append(Edit(each.begin, each.begin, text.encode()))

    def _begin(self, node: Any) -> _Function | None:
        """The function that begins here, if it can count."""
        body = node.child_by_field_name("body")
        if body is None or body.type != "compound_statement" or any(c.text in _EVALUATED for c in node.children) or self.used >= MOST - self.first:
            return None
        made = _Function(body.start_byte + 1)
        made.counters.append(self._next())
        if node.parent is not None and node.parent.type == "field_declaration_list" and re.match(rb"compute\s*\(", node.child_by_field_name("declarator").text):
            self._insert(node.start_byte, b"__attribute__((always_inline)) ")  # it is called from two places now, and would be from none
        return made

    def _next(self) -> int:
        self.used += 1
        return min(self.first + self.used - 1, MOST)

    def _mark(self, node: Any) -> None:
        if node.type in _LOOPS:
            self._count(node.child_by_field_name("body"))
        elif node.type == "if_statement":
            self._mark_branch(node)
        elif node.type == "case_statement":
            colon = next((c for c in node.children if c.type == ":"), None)
            if colon is not None and colon.next_sibling is not None and colon.next_sibling.type != "case_statement":
                self._insert(colon.end_byte, self._text())

    def _mark_branch(self, node: Any) -> None:
        if any(c.type == "constexpr" for c in node.children):
            return
        arms = [node.child_by_field_name("consequence")]
        other = node.child_by_field_name("alternative")
        if other is not None:
            arms.append(next((c for c in reversed(other.named_children) if c.type != "comment"), None) if other.type == "else_clause" else other)
        if all(_only_chooses(arm) for arm in arms):
            return
        for arm in arms:
            if arm is not None and arm.type != "if_statement":
                self._count(arm)
        if any(_leaves(arm) for arm in arms) and node.parent is not None and node.parent.type == "compound_statement" and node.next_named_sibling is not None:
            self._insert(node.end_byte, self._text())

    def _count(self, body: Any) -> None:
        if body is None or body.type == "try_statement":
            return
        if body.type == "compound_statement":
            self._insert(body.start_byte + 1, self._text())
        elif body.type.endswith("_statement") or body.type == "declaration":
            self._insert(body.start_byte, b"{" + self._text())
            self._insert(body.end_byte, b"}")

    def _text(self) -> bytes:
        assert self._function is not None
        self._function.counters.append(self._next())
        return b" popcore_count.add(popcore_w%d);" % self._function.counters[-1]

    def _insert(self, at: int, text: bytes) -> None:
        self.edits.append(Edit(at, at, text))


_EVALUATED = (b"constexpr", b"consteval")


def _statements(node: Any) -> Iterator[Any]:
    """What a statement, or a block, has; without comments."""
    return (c for c in (node.named_children if node.type == "compound_statement" else [node]) if c.type != "comment")


def _only_chooses(arm: Any) -> bool:
    """Whether an arm does so little that it is taken to be done anyhow: it gives values to two variables, or stores one.

    A counter in it would keep the compiler from doing several rounds of a loop at once.
    """
    if arm is None:
        return True
    found = list(_statements(arm))
    return (len(found) == 1 and _is_choice(found[0], _STORES)) or (len(found) <= 2 and all(_is_choice(each, ("identifier",)) for each in found))


_STORES = ("identifier", "subscript_expression", "pointer_expression", "field_expression")
_SIMPLE = (*_STORES, "number_literal", "binary_expression", "unary_expression", "cast_expression", "parenthesized_expression")


def _is_choice(statement: Any, targets: tuple[str, ...]) -> bool:
    if statement.type != "expression_statement" or not statement.named_children:
        return False
    assigned = statement.named_children[0]
    if assigned.type == "update_expression":
        return assigned.child_by_field_name("argument").type in targets
    if assigned.type != "assignment_expression" or assigned.child_by_field_name("left").type not in targets:
        return False
    return assigned.child_by_field_name("right").type in _SIMPLE and b"(" not in assigned.child_by_field_name("right").text


def _leaves(arm: Any) -> bool:
    found = list(_statements(arm)) if arm is not None else []
    return bool(found) and found[-1].type in _LEAVES
