"""add_codelets: what programs for Poplar call before they use popops."""

from __future__ import annotations

from popcore.graph import Graph


def add_codelets(graph: Graph) -> None:
    """Does nothing: operations bring the codelets they use. There for programs that come from Poplar, where it is needed."""
