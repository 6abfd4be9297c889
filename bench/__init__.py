"""Benchmarks: wall time of this machine. ``python -m bench --help``."""
