"""Write docs/errors.md from popcore/errors.py: ``python docs/make_errors.py``. A test compares the two."""

from __future__ import annotations

import inspect
from pathlib import Path

from popcore import errors

HEAD = """\
# Errors

Written by `python docs/make_errors.py` from `popcore/errors.py`; edit that file instead.

Every error that popcore raises on purpose derives from `PopcoreError`. Each message names your object, where it was made
and the amounts, and ends in `try: ...`. The facts in it are also attributes of the error. All can be pickled.
"""


def render() -> str:
    """The page as one string."""
    tree = inspect.cleandoc(errors.__doc__ or "").split("::\n\n", 1)[1].split("\n\n", 1)[0]
    parts = [HEAD, "```text", inspect.cleandoc(tree), "```"]
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.PopcoreError):
            text = inspect.cleandoc(kind.__doc__ or "").split("\n\nArgs:")[0]
            parts += ["", f"## {name}", "", text.replace("``", "`"), "", f"Without a better idea the message ends in `try: {kind.hint}`."]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("errors.md").write_text(render(), encoding="utf-8")
