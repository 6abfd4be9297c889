"""The compiler: Graph and programs to an Executable."""

from popcore.compiler.options import OPTIONS, Option, options, resolve_options
from popcore.compiler.pipeline import PASSES, compile_graph

__all__ = ["OPTIONS", "PASSES", "Option", "compile_graph", "options", "resolve_options"]
