"""Floats of other formats. After PopLibs' popfloat, in snake_case."""

from popcore.ops.popfloat import experimental

__all__ = ["experimental"]
