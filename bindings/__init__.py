"""Codelets in C++, and in any language with a C interface: found, compiled, loaded.

A file is preprocessed once to find the names of its vertex classes. A class is compiled when a graph uses it; the
compiler itself says what its fields are. The result is a library with the driver that Python codelets have too.

``unit.open_unit`` is where to begin; ``calls`` runs single vertices. Importing this package imports neither.
"""
