"""Other processes that tests start: with the popcore that is tested, wherever it is installed, and with the tests."""

import os
import sys
from pathlib import Path

import popcore


def python(*arguments, **options):
    """Arguments of ``subprocess.Popen`` for Python with some arguments."""
    where = os.pathsep.join([str(Path(popcore.__file__).parents[1]), str(Path(__file__).parents[1])])
    return {"args": [sys.executable, "-P", *map(str, arguments)], "env": {**os.environ, "PYTHONPATH": where}, **options}
