"""Memory as a codelet's code sees it: words of the block that the caller gives, and which field a load or store belongs to."""

import llvmlite.ir as ir

from popcore.kernels import abi
from popcore.kernels.operation import I32, I64, state

TABLES = "tables"  # the scope of rows and constants, which no vertex writes
COUNTER = "counter"  # the scope of the block's words that rounding uses


class Scope:
    """Which field an access belongs to, and which others there are."""

    def __init__(self, name, others):
        self.name, self.others = name, tuple(others)


def word(builder, block, index):
    """The address of a word of the block."""
    base = builder.bitcast(block, I64.as_pointer())
    return builder.gep(base, [index if isinstance(index, ir.Value) else I64(index)], inbounds=True)


def block_of(builder):
    """The block, which every function of a codelet gets first."""
    return next(a for a in builder.function.args if a.name == "arg._pc_ctx")


def leave_if(builder, condition, block, site, words, tags):
    """Under ``condition`` write a fault of 64-bit ``words`` and leave the function; its callers leave in turn."""
    with builder.if_then(condition, likely=False):
        leave(builder, block, site, words, tags)


def leave(builder, block, site, words, tags):
    tell(builder, block, site, words, tags)
    builder.ret(I32(1))


def tell(builder, block, site, words, tags):
    """Write a fault to the block."""
    builder.store(site, word(builder, block, abi.AUX_SITE))
    builder.store(I64(len(words)), word(builder, block, abi.AUX_COUNT))
    builder.store(I64(tags), word(builder, block, abi.AUX_TAGS))
    for i, each in enumerate(words):
        builder.store(each, word(builder, block, abi.AUX_VALUES + i))


def counter_scope():
    """The scope of words that no field shares memory with."""
    return Scope(COUNTER, [*state.fields, TABLES])


def _scopes(module, names):
    domain = module.add_metadata(["popcore.fields"])
    return module.add_metadata([module.add_metadata([f"popcore.{name}", domain]) for name in names])


def tag(builder, instruction, scope):
    """Say which field a load or store belongs to."""
    if scope is not None:
        instruction.set_metadata("alias.scope", _scopes(builder.module, [scope.name]))
        instruction.set_metadata("noalias", _scopes(builder.module, scope.others))
    return instruction
