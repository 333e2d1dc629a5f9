"""How far a run is: a bar in notebooks, or a callback."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Union

Progress = Union[bool, None, Callable[[str, int, int], object]]
"""``None``: a bar in notebooks, if ``tqdm`` is there. ``True``: a bar anywhere, or lines without ``tqdm``.
``False``: nothing. Or a function of what is being done, how much of it is done, and how much it is in all (0
if that is not known); it is called at most twenty times a second, in the thread that made the call; what it
raises stops the run."""


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


class _Bar:
    """A bar of tqdm for each thing that is done."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm, self._bar, self._what = tqdm, None, ""

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._bar is None or what != self._what:
            self.close()
            self._bar, self._what = self._tqdm(desc=what, total=total or None, leave=False), what
        bar: Any = self._bar
        bar.total = total or None
        bar.update(done - bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _line(what: str, done: int, total: int) -> None:
    share = f" ({100 * done / total:.0f} %)" if total else ""
    print(f"{what}: {done}{share}", file=sys.stderr)


@contextmanager
def reporter(progress: Progress) -> Iterator[Callable[[str, int, int], object] | None]:
    """The callback that tells about a run as asked for."""
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not _in_notebook()):
        yield None
        return
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        yield _line if progress else None
        return
    bar = _Bar(tqdm)
    try:
        yield bar
    finally:
        bar.close()
