"""The compiled part; private to the package."""

from collections.abc import Callable
from os import PathLike
from typing import TypedDict

_Progress = Callable[[str, int, int], object] | None
_Path = str | PathLike[str]

class _Option(TypedDict):
    name: str
    value: str | None
    takes_several: bool
    joined: bool
    default: str | None
    values: list[str]
    help: str

class _Known(TypedDict):
    labels: list[str]
    synthetic: list[str]
    format: str | None
    bad_lines: int
    solution: str | None

class _Memory(TypedDict):
    requests: bytes
    name: str
    synthetic: str | None

class _Policies(TypedDict):
    placement: object | None
    hotness: object | None
    victims: Callable[[bytes, int, int], int | None] | None
    gc_apart: bool
    placement_name: str | None
    victims_name: str | None

class Error(Exception):
    """What elastripe could not do, and why: the product's own words."""

class OptionError(Error):
    """An option is unknown, lacks its value, or has one that it cannot have."""

class InternalError(Error):
    """A bug of elastripe; please report it."""

class UserWrite:
    """A user writes a chunk.

    Times are numbers of chunks that users have written so far: the clock of log-structured stores.
    """

    def __init__(
        self, chunk: int, now: int, previous: int | None = None, continues: bool = False
    ) -> None: ...
    @property
    def chunk(self) -> int:
        """Number of the chunk in the volume, from 0."""
    @property
    def now(self) -> int:
        """Chunks that users have written before this one: the time."""
    @property
    def previous(self) -> int | None:
        """The time at which the version that is replaced was written, as far as that is known."""
    @property
    def continues(self) -> bool:
        """Whether its request goes on where the write request before it ended."""

class GcWrite:
    """Garbage collection moves a valid chunk."""

    def __init__(self, chunk: int, class_: int, written: int | None, now: int) -> None: ...
    @property
    def chunk(self) -> int:
        """Number of the chunk in the volume, from 0."""
    @property
    def class_(self) -> int:
        """Class of the unit it is moved out of."""
    @property
    def written(self) -> int | None:
        """The time at which a user wrote this version, as far as that is known."""
    @property
    def now(self) -> int:
        """Chunks that users have written so far: the time."""

class CollectedUnit:
    """A unit is about to be collected."""

    def __init__(self, class_: int, created: int, now: int) -> None: ...
    @property
    def class_(self) -> int:
        """Its class."""
    @property
    def created(self) -> int:
        """The time at which its first chunk was placed."""
    @property
    def now(self) -> int:
        """Chunks that users have written so far: the time."""

def set_program(file: _Path) -> None: ...
def version() -> str: ...
def presets() -> str: ...
def parse_size(text: str) -> int: ...
def options(command: str) -> list[_Option]: ...
def run(
    command: str,
    words: list[str],
    trace: _Memory | None,
    policies: _Policies | None,
    progress: _Progress,
) -> str: ...
def read(
    paths: list[_Path], format: str | None, skip_bad_lines: bool, progress: _Progress
) -> tuple[bytes, _Known]: ...
def generate(
    profile: str, requests: int | None, seed: int, range_bytes: int | None, progress: _Progress
) -> tuple[bytes, _Known]: ...
def write(
    path: _Path, requests: bytes, format: str, labels: list[str], force: bool, progress: _Progress
) -> tuple[int, int]: ...
def statistics(requests: bytes, chunk_bytes: int, ignore_devices: bool, progress: _Progress) -> str: ...
