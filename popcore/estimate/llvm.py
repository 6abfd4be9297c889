"""What clang++ writes of a function before it vectorises, ``-print-before=loop-vectorize``, read into the notation of g++."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from popcore.bindings import names
from popcore.estimate.flow import Function, find_loops
from popcore.estimate.instructions import Instruction, fields_of, instructions, is_tally, places_of, size_of, split, typed, value_type

_PART = re.compile(r"(?m)^(?=(?:; )?\*\*\* IR Dump Before )")
_HEAD = re.compile(r"(?:; )?\*\*\* IR Dump Before \w+ on (\S+) \*\*\*")
_WRITTEN = re.compile(r"void (popcore::written(?:_apart)?<.*?>)\(")
_OPERATORS = {
    "fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "add": "+", "sub": "-", "mul": "*", "sdiv": "/", "udiv": "/", "srem": "%", "urem": "%",
    "and": "&", "or": "|", "xor": "^", "shl": "<<", "lshr": ">>", "ashr": ">>",
}  # fmt: skip
_COMPARED = {"eq": "==", "ne": "!=", "gt": ">", "ge": ">=", "lt": "<", "le": "<=", "rd": "==", "no": "!="}  # by the last two letters; ord, uno
_CASTS = ("trunc", "zext", "sext", "fptrunc", "fpext", "fptosi", "fptoui", "sitofp", "uitofp", "ptrtoint", "inttoptr", "bitcast", "addrspacecast")
_EXTREMES = {
    "maxnum": "MAX", "maximum": "MAX", "smax": "MAX", "umax": "MAX", "minnum": "MIN", "minimum": "MIN", "smin": "MIN", "umin": "MIN",
    "fabs": "ABS", "abs": "ABS",
}  # fmt: skip
_FREE = ("lifetime", "assume", "dbg", "experimental", "invariant", "donothing", "prefetch", "stacksave", "stackrestore")
_CALLED = re.compile(r"(<[^<>]*>|[\w{}]+)(?: \([^()]*\))? (?:@([\w.$]+|\"[^\"]*\")|%[\w.]+|asm .*?)\((.*)\)")
_LAST = ("br", "switch", "ret", "invoke", "unreachable", "resume")
_ENTRY = 2  # of g++, whose blocks 0 and 1 are a function's beginning and end
_END = 1


def functions(text: str) -> list[Function]:
    """The functions of a dump, without those that go on in a way that is not understood."""
    made: list[Function] = []
    for part in _PART.split(text):
        head = _HEAD.match(part)
        blocks = instructions(part) if head is not None else {}
        if head is not None and blocks and all(found and found[-1].opcode in _LAST for found in blocks.values()):
            made.append(_Reader(_called(head[1]), blocks).made)
    return made


def _called(symbol: str) -> str:
    """A function's name: of one that is written for an estimate as g++ has it, else the linker's."""
    written = _WRITTEN.match(names.demangled(symbol)) if symbol.startswith("_ZN7popcore") else None
    return written[1] if written is not None else re.sub(r"[^\w.]", "_", symbol)


@dataclass
class _Branch:
    """Where a branch goes."""

    condition: str
    true: int
    false: int


class _Reader:
    """Reads one function."""

    def __init__(self, name: str, blocks: dict[str, list[Instruction]]) -> None:
        self.made = Function(name)
        self.blocks = blocks
        self.number = {label: _ENTRY + i for i, label in enumerate(self.blocks)}
        self.by_target = {each.target: each for each in self._all() if each.target}
        self.users: dict[str, list[Instruction]] = {}
        for each in self._all():
            for used in each.names():
                self.users.setdefault(used, []).append(each)
        self.names: dict[str, str] = {}
        self.same = self._aliases()
        self.tally = {each.target for each in self._all() if is_tally(each, self.by_target)}
        self.offsets: dict[str, tuple[str, int]] = {}  # of an address that is another one and bytes
        self.chains: dict[int, list[int]] = {}  # the blocks that a block became, one for each part of its condition
        self.used = 0
        self.writers: dict[str, Callable[[Instruction, list[str]], None]] = {
            "fneg": self._fneg, "freeze": self._freeze, "alloca": self._alloca, "select": self._select, "phi": self._phi, "load": self._load,
            "store": self._store, "getelementptr": self._getelementptr, "br": self._br, "switch": self._switch,
        }  # fmt: skip
        for label, found in self.blocks.items():
            self.block = self.number[label]
            self.made.statements[self.block] = []
            for each in found:
                self._write(each)
        self._finish()

    def _all(self) -> Iterator[Instruction]:
        return (each for found in self.blocks.values() for each in found)

    def _aliases(self) -> dict[str, str]:
        """Names that are another one's value: of a phi with one operand, and of a field's address that was formed before."""
        made: dict[str, str] = {}
        formed: dict[str, str] = {}
        for each in self._all():
            if each.opcode == "phi" and len(incoming := places_of(each)) == 1 and incoming[0][0].startswith("%"):
                made[each.target] = incoming[0][0]
            elif each.opcode == "getelementptr" and fields_of(each) is not None:
                first = formed.setdefault(each.rest, each.target)
                if first != each.target:
                    made[each.target] = first
        return made

    # -- names --

    def _name(self, raw: str) -> str:
        while raw in self.same:
            raw = self.same[raw]
        if raw not in self.names:
            self.names[raw] = self._fresh("")
        return self.names[raw]

    def _fresh(self, kind: str) -> str:
        self.used += 1
        if kind:
            self.made.types[f"_{self.used}"] = kind
        return f"_{self.used}"

    def _value(self, text: str) -> str:
        """An operand: a name, or a number."""
        if text.startswith("%"):
            return self._name(text)
        if "@" in text:
            return "&global"
        if re.match(r"-?\d", text):
            return text if not text.startswith("0x") else "0.5"
        return "1" if text == "true" else "0" if text in ("false", "null", "undef", "poison", "zeroinitializer", "none") else "1.0"

    def _add(self, text: str) -> None:
        self.made.statements[self.block].append(text)

    def _set(self, each: Instruction, kind: str, value: str) -> None:
        name = self._name(each.target)
        self.made.types[name] = value_type(kind)
        self._add(f"{name} = {value}")

    # -- instructions --

    def _write(self, each: Instruction) -> None:
        if each.target in self.same or each.target in self.tally:
            return
        operands = split(each.rest)
        if each.opcode in _OPERATORS:
            self._binary(each, operands)
        elif each.opcode in ("icmp", "fcmp"):
            if not self._folds(each.target):
                left, operator, right = self._compared(each)
                self._set(each, "i1", f"{left} {operator} {right}")
        elif each.opcode in _CASTS:
            source, _, kind = each.rest.rpartition(" to ")
            self._set(each, kind, f"({value_type(kind)}) {self._value(typed(source)[1])}")
        elif each.opcode in ("call", "invoke"):
            self._call(each)
        elif each.opcode in self.writers:
            self.writers[each.opcode](each, operands)
        elif each.opcode in ("ret", "unreachable", "resume"):
            self.made.successors[self.block] = [_END]
        elif each.target:
            self._set(each, typed(operands[0])[0], f"OTHER <{', '.join(map(self._value, each.names()))}>")

    def _binary(self, each: Instruction, operands: list[str]) -> None:
        kind, left = typed(operands[0])
        if self._is_logical(each) and self._folds(each.target):
            return
        operator = "+" if each.opcode == "or" and self._is_sum(left, operands[1]) else _OPERATORS[each.opcode]
        self._set(each, kind, f"{self._value(left)} {operator} {self._value(operands[1])}")

    def _is_sum(self, left: str, right: str) -> bool:
        """Whether an ``or`` adds a number that is less than what its other operand is a multiple of."""
        shifted = self.by_target.get(left)
        if shifted is None or shifted.opcode != "shl" or not right.isdigit():
            return False
        by = split(shifted.rest)[1]
        return by.isdigit() and int(right) < 1 << int(by)

    def _compared(self, each: Instruction) -> tuple[str, str, str]:
        predicate, _, rest = each.rest.partition(" ")
        left, right = split(rest)[:2]
        return self._value(typed(left)[1]), _COMPARED.get(predicate[-2:], "=="), self._value(right)

    def _fneg(self, each: Instruction, operands: list[str]) -> None:
        kind, value = typed(operands[0])
        self._set(each, kind, f"-{self._value(value)}")

    def _freeze(self, each: Instruction, operands: list[str]) -> None:
        kind, value = typed(operands[0])
        self._set(each, kind, self._value(value))

    def _alloca(self, each: Instruction, operands: list[str]) -> None:
        self._set(each, "ptr", "&local")

    def _select(self, each: Instruction, operands: list[str]) -> None:
        condition, (kind, first), (_, second) = (typed(operand) for operand in operands)
        if self._is_logical(each):
            if not self._folds(each.target):
                other, operator = (first, "&") if second == "false" else (second, "|")
                self._set(each, kind, f"{self._value(condition[1])} {operator} {self._value(other)}")
        elif self._is_extreme(each):
            self._set(each, kind, f"MAX_EXPR <{self._value(first)}, {self._value(second)}>")
        else:
            self._set(each, kind, f"{self._value(condition[1])} ? {self._value(first)} : {self._value(second)}")

    def _phi(self, each: Instruction, operands: list[str]) -> None:
        name = self._name(each.target)
        self.made.types[name] = value_type(typed(each.rest)[0])
        values = [(self._value(value), self.number.get(label, _ENTRY)) for value, label in places_of(each)]
        self.made.phis[name] = self.block, values

    # -- memory --

    def _getelementptr(self, each: Instruction, operands: list[str]) -> None:
        base = self._value(typed(operands[1])[1])
        if (fields := fields_of(each)) is not None:
            self._set(each, "ptr", f"&{base}.{fields}")
            return
        constant, kind = 0, operands[0]
        moving: list[str] = []
        for number, operand in enumerate(operands[2:]):
            if number:
                kind = kind[1:-1].split(" x ", 1)[1] if kind.startswith("[") else "i8"  # of a structure: its layout is not told
            index, size = typed(operand)[1], size_of(kind)
            if not index.startswith("%"):
                constant += size * int(self._value(index))
            else:
                moving.append(self._value(index))
                if size != 1:
                    scaled = self._fresh("long")
                    self._add(f"{scaled} = {moving[-1]} * {size}")
                    moving[-1] = scaled
        self._sum(each, base, moving, constant)

    def _sum(self, each: Instruction, base: str, moving: list[str], constant: int) -> None:
        for term in moving[:-1]:
            between = self._fresh("void *")
            self._add(f"{between} = {base} + {term}")
            base = between
        if moving and constant:
            between = self._fresh("void *")
            self._add(f"{between} = {base} + {moving[-1]}")
            base, moving = between, []
        if not moving:
            first, before = self.offsets.get(base, (base, 0))
            self.offsets[self._name(each.target)] = first, before + constant
        self._set(each, "ptr", f"{base} + {moving[-1] if moving else constant}")

    def _place(self, operand: str) -> str:
        raw = typed(operand)[1]
        if raw in self.tally or "popcore5tallyE" in raw:
            return "tally.spent"
        if not raw.startswith("%"):
            return "MEM[&global]"
        base, offset = self.offsets.get(self._name(raw), (self._name(raw), 0))
        return f"MEM[(const uint32_t *){base} + {offset}B]" if offset else f"*{base}"

    def _load(self, each: Instruction, operands: list[str]) -> None:
        self._set(each, operands[0].removeprefix("volatile ").removeprefix("atomic "), self._place(operands[1]))

    def _store(self, each: Instruction, operands: list[str]) -> None:
        kind, value = typed(operands[0].removeprefix("volatile ").removeprefix("atomic "))
        self._add(f"{self._place(operands[1])} = {self._value(value) if value.startswith('%') else self._fresh(value_type(kind))}")

    # -- calls --

    def _call(self, each: Instruction) -> None:
        if each.opcode == "invoke":
            self.made.successors[self.block] = [self.number[label] for label in re.findall(r"to label (%[\w.]+)", each.rest)]
        found = _CALLED.search(each.rest)
        if found is None:
            self._charge_call(each, "i32", "unknown", [])
            return
        kind, name = found[1], (found[2] or "unknown").strip('"')
        values = [self._value(typed(operand)[1]) for operand in split(found[3])]
        if not name.startswith("llvm."):
            self._charge_call(each, kind, re.sub(r"[^\w.]", "_", _called(name)), values)
            return
        operation = name.split(".")[1]
        if operation in _EXTREMES:
            self._set(each, kind, f"{_EXTREMES[operation]}_EXPR <{', '.join(values[: 1 if _EXTREMES[operation] == 'ABS' else 2])}>")
        elif operation == "expect":
            self._set(each, kind, values[0])
        elif operation == "threadlocal":
            self._set(each, kind, "&global")
        elif operation not in _FREE:
            self._charge_call(each, kind, operation, values)

    def _charge_call(self, each: Instruction, kind: str, name: str, values: list[str]) -> None:
        call = f"{name} ({', '.join(values)})"
        if each.target:
            self._set(each, kind, call)
        else:
            self._add(call)

    # -- conditions --

    def _is_logical(self, each: Instruction) -> bool:
        operands = split(each.rest)
        if typed(operands[0])[0] != "i1":
            return False
        if each.opcode == "select":
            return typed(operands[1])[0] == "i1" and (typed(operands[2])[1] == "false" or typed(operands[1])[1] == "true")
        return each.opcode in ("and", "or")

    def _is_extreme(self, each: Instruction) -> bool:
        """Whether a choice is between what was compared."""
        operands = [typed(operand)[1] for operand in split(each.rest)]
        compared = self.by_target.get(operands[0])
        if each.opcode != "select" or compared is None or compared.opcode != "fcmp":
            return False
        left, operator, right = self._compared(compared)
        return operator[0] in "<>" and {left, right} == {self._value(operand) for operand in operands[1:]}

    def _folds(self, raw: str) -> bool:
        """Whether a condition is nothing by itself: branches, and extremes, have it in them."""
        return all(each.opcode == "br" or self._is_extreme(each) or (self._is_logical(each) and self._folds(each.target)) for each in self.users.get(raw, []))

    def _br(self, each: Instruction, operands: list[str]) -> None:
        labels = [self.number[typed(operand)[1]] for operand in operands if operand.startswith("label")]
        self.chains[self.block] = [self.block]
        if len(labels) == 1:
            self.made.successors[self.block] = labels
        else:
            self._branch(self.block, _Branch(typed(operands[0])[1], *labels), self.chains[self.block])

    def _branch(self, block: int, branch: _Branch, chain: list[int]) -> None:
        """A branch; of a condition of two parts, two branches, as it was written."""
        condition = self.by_target.get(branch.condition)
        if condition is not None and condition.opcode in ("and", "or", "select") and self._is_logical(condition) and self._folds(condition.target):
            operands = [typed(operand)[1] if " " in operand else operand for operand in split(condition.rest)]
            both = condition.opcode == "and" or (condition.opcode == "select" and operands[2] == "false")
            first, second = operands[0], operands[1 if both or condition.opcode == "or" else 2]
            between = _ENTRY + len(self.number) + sum(len(other) - 1 for other in self.chains.values())
            chain.append(between)
            self.made.statements[between] = []
            self._branch(block, _Branch(first, between, branch.false) if both else _Branch(first, branch.true, between), chain)
            self._branch(between, _Branch(second, branch.true, branch.false), chain)
            return
        if condition is not None and condition.opcode in ("icmp", "fcmp"):
            text = " ".join(self._compared(condition))
        else:
            text = f"{self._value(branch.condition)} != 0"
        self.made.statements[block].append(f"if ({text})")
        self.made.successors[block] = [branch.true, branch.false]

    def _switch(self, each: Instruction, operands: list[str]) -> None:
        self._add(f"switch ({self._value(typed(operands[0])[1])})")
        self.made.successors[self.block] = list(dict.fromkeys(self.number[label] for label in re.findall(r"label (%[\w.]+)", each.rest)))

    def _finish(self) -> None:
        """Leave out what cannot be come to, and tell phis of blocks that became several."""
        function = self.made
        kept = set(function.order)
        function.statements = {block: found for block, found in function.statements.items() if block in kept}
        function.successors = {block: found for block, found in function.successors.items() if block in kept}
        for name, (block, values) in list(function.phis.items()):
            if block not in kept:
                del function.phis[name]
                continue
            origins = [(value, each) for value, before in values for each in self.chains.get(before, [before])]
            function.phis[name] = block, [(value, each) for value, each in origins if each in kept and block in function.successors[each]]
        del function.order
        find_loops(function)
