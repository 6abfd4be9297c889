"""How much work something is, counted: the same on every machine, loaded or not."""

import sys
import threading


def python_calls(work):
    """Calls of Python functions while ``work()`` runs, in this thread. What NumPy does inside counts nothing."""
    count = 0

    def on_event(_frame, event, _argument):
        nonlocal count
        count += event == "call"

    assert threading.current_thread() is threading.main_thread()
    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
