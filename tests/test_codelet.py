"""Declaring codelets: annotations as strings, and what a class keeps alive."""

from __future__ import annotations

import gc
import weakref

import numpy as np

from popcore import FLOAT, InOut, Vector, Vertex
from popcore.codelet import codelet_of


def local_class():
    """A codelet with an annotation that only this function can read, and a large local beside it."""
    Element, large = FLOAT, np.zeros(1000)

    class Local(Vertex):
        x: InOut[Vector[Element]]

        def compute(self):
            self.x[0] = 1.0

    return Local, weakref.ref(large)


def test_annotations_may_name_what_is_local():
    """
    Strings, as ``from __future__ import annotations`` makes them, are read where the class was defined.
    """
    assert str(codelet_of(local_class()[0]).fields[0]) == "x: inout vector[FLOAT]"


def test_a_class_keeps_nothing_else_of_there_alive():
    """
    A graph or an array beside the class goes when its function returns.
    """
    codelet, large = local_class()
    gc.collect()
    assert large() is None
    assert codelet_of(codelet).name == "Local"
