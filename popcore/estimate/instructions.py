"""The text of LLVM's instructions: blocks, operands, types."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LABEL = re.compile(r'([\w.$-]+|"[^"]*"):')
_INSTRUCTION = re.compile(r"  (?:(%[\w.$-]+) = )?(?:tail |musttail |notail )?(\w+) ?(.*)$")
_ABOUT = re.compile(r"(?:, ![\w.]+ !?[\w.()]+|, align \d+| #\d+)+$")
_FLAGS = re.compile(r"^(?:(?:nuw|nsw|exact|inbounds|nusw|disjoint|nneg|samesign|fast|nnan|ninf|nsz|arcp|contract|afn|reassoc) )+")
_NAME = re.compile(r"%[\w.$-]+")
_TYPES = {"i1": "bool", "i8": "char", "i16": "short", "i32": "int", "i64": "long", "half": "_Float16", "float": "float", "double": "double", "ptr": "void *"}
_SIZES = {"i1": 1, "i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4, "i64": 8, "double": 8, "ptr": 8}


@dataclass(frozen=True)
class Instruction:
    """``target = opcode rest``; of a store and its like the target is ""."""

    target: str
    opcode: str
    rest: str

    def names(self) -> list[str]:
        """The values that it has to do with; labels too, which are called like none of them."""
        return _NAME.findall(self.rest)


def instructions(text: str) -> dict[str, list[Instruction]]:
    """The instructions of each block of a function, by its label; the first block's is "" where it is not written."""
    made: dict[str, list[str]] = {}
    lines = text[text.index("\ndefine ") :].splitlines()[2:] if "\ndefine " in text else []
    block: list[str] | None = None
    for line in lines:
        if line.startswith("}"):
            break
        if (label := _LABEL.match(line)) is not None:
            block = made[f"%{label[1]}"] = []
        elif line.startswith(("   ", "  ]")) and block:
            block[-1] += " " + line.strip()  # the cases of a switch, the ways on from a call
        elif line.startswith("  "):
            block = made.setdefault("", []) if block is None else block
            block.append(line)
    return {label: [found for line in block if (found := _instruction(line)) is not None] for label, block in made.items()}


def _instruction(line: str) -> Instruction | None:
    found = _INSTRUCTION.match(_ABOUT.sub("", line))
    if found is None:
        return None
    adds = found[2] == "or" and found[3].startswith("disjoint ")
    return Instruction(found[1] or "", "add" if adds else found[2], _FLAGS.sub("", found[3]))


def split(text: str) -> list[str]:
    """Operands: what stands between commas that are in no brackets."""
    made, depth, begin = list[str](), 0, 0
    for at, character in enumerate(text):
        if character in "<([{":
            depth += 1
        elif character in ">)]}":
            depth -= 1
        elif character == "," and not depth:
            made.append(text[begin:at].strip())
            begin = at + 1
    return [*made, text[begin:].strip()]


def typed(operand: str) -> tuple[str, str]:
    """The type of an operand, and its value, without what else is said of it."""
    end = len(operand.split(" ", 1)[0])
    if operand[:1] in "<[{":
        depth = 0
        for at, character in enumerate(operand):
            depth += (character in "<[{") - (character in ">]}")
            if not depth:
                end = at + 1
                break
    kind, rest = operand[:end], operand[end:].strip()
    return kind, rest if rest[:1] in "<[{" or rest.endswith(")") else rest.rsplit(" ", 1)[-1]  # a vector, an address that is known, or a word


def places_of(phi: Instruction) -> list[tuple[str, str]]:
    """The values of a phi, and the labels of the blocks that they come from."""
    return [(found[1], found[2]) for found in re.finditer(r"\[ (.*?), (%[\w.$-]+) \]", phi.rest)]


def fields_of(address: Instruction) -> str | None:
    """Which field of a structure is addressed; None if it is something else, or an index is not constant."""
    kind, _, *indices = split(address.rest)
    values = [typed(index)[1] for index in indices]
    constant = kind[:1] in ("%", "{") and len(values) > 1 and not any(value.startswith("%") for value in values)
    return "_".join(["f", *values]) if constant else None


def is_tally(each: Instruction, by_target: dict[str, Instruction]) -> bool:
    """Whether an address is in the tally of a thread."""
    if "popcore5tallyE" in each.rest and each.opcode in ("call", "getelementptr"):
        return True
    if each.opcode != "getelementptr":
        return False
    base = by_target.get(typed(split(each.rest)[1])[1])
    return base is not None and is_tally(base, by_target)


def value_type(kind: str) -> str:
    """A type as C++ writes it."""
    vector = re.fullmatch(r"<(\d+) x (.*)>", kind)
    return f"vector({vector[1]}) {value_type(vector[2])}" if vector is not None else _TYPES.get(kind, "int")


def size_of(kind: str) -> int:
    """Bytes of a type; 8 of a structure, whose layout is not told."""
    if (several := re.fullmatch(r"[<\[](\d+) x (.*)[>\]]", kind)) is not None:
        return int(several[1]) * size_of(several[2])
    return _SIZES.get(kind, 8)
