"""What popcore means: graphs and programs run slowly and plainly, without compiler, plans or native code."""

from popcore.reference.engine import ReferenceEngine

__all__ = ["ReferenceEngine"]
