"""``python -m tests.fuzz.worker SEED FIRST LAST``: compare some programs in a process of its own, which may crash; a line of JSON for each."""

from __future__ import annotations

import faulthandler
import json
import sys
import tempfile
from pathlib import Path

from tests.fuzz.choices import Drawn
from tests.fuzz.run import check, name_of

WAITS_SECONDS = 600.0
"""After which a process that waits for nothing is ended."""


def main(seed: int, first: int, last: int) -> None:
    """Programs ``first`` to ``last`` - 1. What ends in no time ends the process, with a traceback."""
    faulthandler.enable()
    with tempfile.TemporaryDirectory(prefix="popcore-fuzz-") as scratch:
        for number in range(first, last):
            faulthandler.dump_traceback_later(WAITS_SECONDS, exit=True)
            outcome = check(Drawn(name_of(seed, number)), Path(scratch))
            features = sorted(outcome.case.features) if outcome.case else []
            print(json.dumps({"number": number, "features": features, "kind": outcome.kind, "compiled": "numba" in sys.modules}), flush=True)
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
