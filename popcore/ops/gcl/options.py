"""Options of collectives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popcore.errors import OptionError, near_matches
from popcore.executable.schedules import AUTO

KNOWN = {"method": AUTO}
"""Every option and its default. ``method``: a name of ``ALGORITHMS``, or "auto"."""


def method_of(options: Mapping[str, Any] | None) -> str:
    """The method that ``options`` ask for; whether it exists is for ``schedules.choose`` to say.

    Raises:
        OptionError: an unknown option.
    """
    for key in options or {}:
        if key not in KNOWN:
            raise OptionError(f"collectives have no option {key!r}", near_matches(key, KNOWN, "one of " + ", ".join(map(repr, KNOWN))))
    return str((options or {}).get("method", KNOWN["method"]))
