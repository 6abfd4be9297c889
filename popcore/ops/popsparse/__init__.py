"""popsparse: products of sparse and dense matrices. After PopLibs' popsparse, in snake_case.

``static_``: the pattern is known when the graph is built. ``dynamic``: it may change from run to run. ``experimental``: matrices of large blocks.
"""

from popcore.ops.popops.codelets import add_codelets
from popcore.ops.popsparse import dynamic, experimental, static_
from popcore.ops.popsparse.formats import COOMatrix, CSCMatrix, CSRMatrix

__all__ = ["COOMatrix", "CSCMatrix", "CSRMatrix", "add_codelets", "dynamic", "experimental", "static_"]
