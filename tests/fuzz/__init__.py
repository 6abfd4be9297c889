"""Random programs on random graphs, on which all engines must agree; and random damage to files, which must be noticed.

``python -m tests.fuzz`` draws and compares as many programs as there is time for; see ``__main__``.
"""
