"""Many engines, many threads, full disks, signals: nothing leaks, nothing is half written, nothing hangs.

``python -m tests.load`` runs them at full size and prints figures; the tests are smaller.
"""
