"""Write docs/ops.md from the code: ``python docs/make_ops.py``. A test compares the two."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from popcore.codelets.operations import KIND_LETTERS, ROWS

HEAD = """\
# Operations

Written by `python docs/make_ops.py` from the code; edit that instead. Names are those of PopLibs in snake_case, under `popcore.ops`; arguments keep their
order. How exact each operation is: `docs/numerics.md`.
"""

MODULES = ("popops", "poplin", "popnn", "poprand", "popsparse", "popfloat", "gcl", "poputil")

# The functions of PopLibs that public programs use most, in order.
MOST_USED = [
    "popops::addCodelets",
    "poputil::mapTensorLinearly",
    "poplin::addCodelets",
    "popops::cast",
    "popops::addInPlace",
    "popops::mulInPlace",
    "popops::mapInPlace",
    "poputil::templateVertex",
    "popops::zero",
    "popops::reduce",
    "poplin::matMul",
    "popops::map",
    "popops::subInPlace",
    "popops::sub",
    "poprand::addCodelets",
    "popops::reduceWithOutput",
    "poplin::createMatMulInputRHS",
    "popops::dynamicSlice",
    "popops::createSliceableTensor",
    "popops::fill",
    "poprand::uniform",
    "popops::embedding::plan",
    "popops::mul",
    "popops::multiSlice",
    "poplin::createMatMulInputLHS",
    "poplin::matMulGrouped",
    "poputil::detectDimGroupings",
    "poputil::mapTensorLinearlyWithOffset",
    "popops::add",
    "popops::expInPlace",
    "popops::dynamicUpdate",
    "poputil::splitRegionsBetweenWorkers",
    "popops::neg",
    "popops::multiUpdateAdd",
    "poprand::normal",
    "popsparse::addCodelets",
    "popops::groupedMultiSlice",
    "poputil::detectInnermostGrouping",
    "popops::topKWithPermutation",
    "popnn::addCodelets",
    "popops::lt",
    "popops::createIndicesTensor",
    "poplin::createMatMulGroupedInputRHS",
    "poprand::setSeed",
    "poputil::duplicate",
    "poplin::createMatMulGroupedInputLHS",
    "popops::allTrue",
    "popops::cos",
    "popsparse::static_::createDenseSparseMatMulRHS",
    "popsparse::static_::createSparseDenseMatMulLHS",
    "popsparse::static_::denseSparseMatMul",
    "popsparse::static_::sparseDenseMatMul",
    "popops::countedLoop",
    "popops::createSliceTensor",
    "popnn::maxAndArgMax",
    "popops::reduceMany",
    "poputil::splitRegions",
    "poputil::unflattenIndex",
    "popops::scaledAddTo",
    "popnn::nonLinearity",
    "popops::negInPlace",
    "popops::selectInPlace",
    "popops::divInPlace",
    "popops::exp",
    "poprand::truncatedNormal",
    "popnn::nonLinearityInPlace",
    "popops::pad",
    "popops::rearrange::regroupIfBeneficial",
    "poplin::convolution",
    "popops::countedForLoop",
    "popops::encodeOneHot",
    "poputil::calcLinearTileMapping",
    "popnn::topK",
    "popops::abs",
    "popops::groupedMultiUpdateAdd",
    "popops::iota",
    "popops::logicalNot",
    "poplin::matMulGroupedAcc",
    "popops::absInPlace",
    "popops::max",
    "popops::sinInPlace",
    "popsparse::dynamic::createSparseDenseMatMulLHS",
    "popsparse::dynamic::sparseDenseMatMul",
    "poputil::toProfileValue",
    "popsparse::dynamic::createFullyConnectedWeights",
    "popops::gather",
    "popops::subWithOutput",
    "popsparse::dynamic::fullyConnectedDenseGradWSerialSplits",
    "popsparse::experimental::bsMatMul",
    "popsparse::experimental::bsSoftmax",
    "popsparse::experimental::bsSoftmaxGrad",
    "popops::createSliceableTensorFromSlice",
    "popnn::argMax",
    "popfloat::experimental::halfToSingle",
    "popfloat::experimental::singleToHalf",
    "popnn::calcLoss",
    "popsparse::dynamic::createFullyConnectedInput",
    "popsparse::dynamic::createIndicesTensor",
    "popsparse::dynamic::embeddingSlice",
    "popsparse::dynamic::embeddingUpdateAdd",
]

# Names of popops and poputil that are not here, and why.
LEFT_OUT = {
    "`popops::multiSlice`, `multiUpdate`, `multiUpdateAdd` by offsets known when the graph is built": "a view says it: `concat(t.slices(offsets))`",
    "`popops::rearrange::canUseFastTranspose`, `addTransposeVertices`": "they choose between assembly codelets; a transpose is a copy or one vertex here",
    "`popops::addForLoopCounterVertex`": "`popops.counted_for_loop` is what it is for",
    "`popops::GatherParams`": "a limit of elements on a tile, which the compiler knows; `popops.gather` takes none",
    "`popops::histogram` to a FLOAT tensor": "PopLibs deprecates it; `popops.cast` the counts",
    "`popops::splineBasis`, `splineWeighting`": "not yet: no public program was found that uses them",
    "cost functions of `popops/PerformanceEstimation.hpp`": "each codelet has its own, `cycles`, which the compiler asks",
    "`poputil::PoplibsOpDebugInfo`, `OpDebugInfo`": "a `name` is what is given to an operation; `poputil.to_profile_value` is there",
    "`poputil::OptionHandler`, `OptionSpec`": "options are mappings, checked by the operations themselves",
    "`poputil::poplibs_error`": "`popcore.errors`",
}

KINDS = {"f": "FLOAT", "h": "HALF", "i": "INT and other signed", "u": "UNSIGNED_INT and other unsigned", "b": "BOOL"}
assert set(KINDS) <= set(KIND_LETTERS.values())


def snake(name: str) -> str:
    """``addInPlace`` as ``add_in_place``."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])|(?<=[A-Z])([A-Z])(?=[a-z])", lambda m: "_" + (m[1] or m[2]), name).lower().replace("__", "_")


def found(name: str) -> str:
    """Where the function of PopLibs is here; "" if it is not."""
    module, *inner, function = name.split("::")
    for room in (module,) if inner else (module, *MODULES):
        path = ".".join([room, *inner])
        try:
            place = importlib.import_module(f"popcore.ops.{path}")
        except ModuleNotFoundError:
            continue
        if hasattr(place, snake(function)):
            return f"`{path}.{snake(function)}`"
    return ""


def at_home(room: ModuleType, name: str) -> bool:
    """Whether a name of a module is one of its functions or classes, be it another name for one of a sibling's."""
    thing = getattr(room, name)
    kind = inspect.isfunction(thing) or inspect.isclass(thing)
    return kind and (thing.__module__ == room.__name__ or (thing.__module__.startswith("popcore.") and name != thing.__name__))


def listed(title: str, place: Any, names: Iterable[str]) -> list[str]:
    """A table of the functions, classes and modules among ``names``, each with the first sentence of what it says of itself."""
    parts = ["", f"## {title}", "", "| name | what it is |", "|---|---|"]
    for name in names:
        thing = getattr(place, name)
        text = inspect.getdoc(thing) if callable(thing) or inspect.ismodule(thing) else None
        if text:
            sentence = " ".join(text.split("\n\n")[0].split()).replace("``", "`").replace("|", "\\|")
            parts.append(f"| `{name}` | {sentence} |")
    return parts


def render() -> str:
    """The page as one string."""
    popops = importlib.import_module("popcore.ops.popops")
    parts = [HEAD, "## The functions of PopLibs that are used most", "", "| PopLibs | here |", "|---|---|"]
    parts += [f"| `{name}` | {found(name) or 'not yet'} |" for name in MOST_USED]
    parts += [
        "",
        "## Element-wise operations",
        "",
        "Each also has the forms `_in_place` and `_with_output`.",
        "",
        "| name | element types | what it is |",
        "|---|---|---|",
    ]
    for op, row in ROWS.items():
        types = ", ".join(KINDS[k] for k in row.kinds) + (f" of {row.bits} bits" if row.bits else "")
        parts.append(f"| `{op.value}` | {types} | {(getattr(popops, op.value).__doc__ or '').splitlines()[0]} |")
    forms = {op.value + suffix for op in ROWS for suffix in ("", "_in_place", "_with_output")}
    parts += listed("The rest of popops", popops, sorted(set(popops.__all__) - forms))
    for module in MODULES[1:]:
        place = importlib.import_module(f"popcore.ops.{module}")
        parts += listed(module, place, sorted(place.__all__))
        for inner in (n for n in place.__all__ if inspect.ismodule(getattr(place, n))):
            room = getattr(place, inner)
            parts += listed(f"{module}.{inner}", room, sorted(n for n in vars(room) if not n.startswith("_") and at_home(room, n)))
    parts += ["", "## Names of popops and poputil that are not here", "", "| PopLibs | why not |", "|---|---|"]
    parts += [f"| {name} | {reason} |" for name, reason in LEFT_OUT.items()]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("ops.md").write_text(render(), encoding="utf-8")
