"""Where in the user's file a thing was made, and names for things that were given none."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_REAL_PACKAGE = os.path.realpath(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Site(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


UNKNOWN = Site("<unknown>", 0)


def user_site() -> Site:
    """The innermost frame on the stack that is not popcore's own."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((_PACKAGE, _REAL_PACKAGE)):
            return Site(name, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]  # typeshed: f_back may be None, the loop ends there
    return UNKNOWN


def plain(name: str) -> str:
    """A name for a terminal: what would move its cursor, change its colours or begin a line is shown as an escape, as in ``repr``."""
    return name if name.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)
