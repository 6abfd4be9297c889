"""Options of collectives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popcore.errors import OptionError, near_matches
from popcore.executable.schedules import AUTO
from popcore.types import FLOAT, ElementType, as_element_type

Options = Mapping[str, Any] | None

KNOWN = {
    "method": AUTO,
    "partialsType": "half",
    "useReplicatedImplementation": "true",
    "maxBytesPerTile": "",
    "syncful.useOptimisedLayout": "true",
    "syncful.useForwardingToSupportStridedGroups": "false",
}
"""Every option and its default. All but the first two are GCL's, taken for the sake of programs that set them, and without effect.

method        a name of ``ALGORITHMS``, or "auto", see ``popcore.executable.schedules.choose``
partialsType  "half": sums of HALF are rounded to HALF at every hop; "float": they travel as FLOAT and are rounded once
"""


def read_options(options: Options) -> dict[str, Any]:
    """``options`` as arguments of a ``Collective``: ``method`` and ``partials``. Whether a method exists is for ``schedules.choose`` to say.

    Raises:
        OptionError: an unknown option, or a value that one cannot have.
    """
    for key in options or {}:
        if key not in KNOWN:
            raise OptionError(f"collectives have no option {key!r}", near_matches(key, KNOWN, "one of " + ", ".join(map(repr, KNOWN))))
    given = {**KNOWN, **(options or {})}
    partials: dict[Any, ElementType | None] = {"half": None, "float": as_element_type(FLOAT)}
    if given["partialsType"] not in partials:
        raise OptionError(f"partialsType of a collective is {given['partialsType']!r}", "one of 'half', 'float'")
    return {"method": str(given["method"]), "partials": partials[given["partialsType"]]}
