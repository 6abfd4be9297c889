"""A progress bar for long compiles: one line on a terminal, nothing anywhere else."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

PATIENCE_SECONDS = 2.0  # a compile that is shorter shows nothing


class Progress:
    """Shows the pass a compile is in, once it has taken two seconds."""

    def __init__(self, passes: int, shown: bool) -> None:
        self._passes, self._shown = passes, shown and sys.stderr.isatty()
        self._began = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def tell(self, name: str, number: int) -> None:
        """Pass ``number`` (from 0) begins."""
        if not self._shown or (self._bar is None and time.monotonic() - self._began < PATIENCE_SECONDS):
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress as Bar

            self._bar = Bar(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("compiling", total=self._passes)
        self._bar.update(self._task, completed=number, description=f"compiling: {name}")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()
