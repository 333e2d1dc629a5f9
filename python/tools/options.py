"""Prints `elastripe/_options.py`: the options of the commands as types, from the commands themselves.

python tools/options.py > elastripe/_options.py
"""

from __future__ import annotations

from elastripe import _native

# Arguments of their own, in `elastripe/commands.py`.
APART = {
    "simulate": {"trace", "placement", "gc", "hotness"},
    "place": {"trace", "placement", "gc", "hotness"},
    "replay": {"trace"},
    "flash": {"workload"},
    "reliability": set(),
}
HEAD = '''"""The options of the commands, for type checkers. Made by `tools/options.py`; not to be changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from os import PathLike
from typing import Any, Literal, TypedDict, Union

Text = str
Number = Union[int, float, str]
Size = Union[int, float, str]
Rate = Union[int, float, str]
Time = Union[timedelta, str]
File = Union[str, "PathLike[str]"]
'''


def kind(option: _native._Option) -> str:
    """The type of an option's value."""
    if option["value"] is None:
        return "bool"
    if option["name"] == "sweep":
        return "Union[Mapping[str, Sequence[Any]], str, Sequence[str]]"
    name = option["value"].split(",")[0]
    one = {
        "SIZE": "Size",
        "RATE": "Rate",
        "TIME": "Time",
        "N": "Number",
        "COUNT": "Number",
        "CHUNKS": "Number",
        "ROWS": "Number",
        "R": "Number",
        "SHARE": "Number",
        "CAP": "Number",
        "PERCENT": "Number",
        "WRITES": "Number",
        "N|end|never": "Number",
        "MEMBER": "File",
        "FILE": "File",
    }.get(
        name,
        "Number"
        if name in ("SEED", "SPEED", "QUEUE_DEPTH", "STRIPES", "FACTOR", "N|SHARE", "BATCHES", "SSDS")
        else "Text",
    )
    if option["values"]:
        one = f"Literal[{', '.join(repr(value) for value in option['values'])}]"
    return f"Union[{one}, Sequence[{one}]]" if option["takes_several"] else one


def printed() -> str:
    """The whole file."""
    parts = [HEAD]
    for command, apart in APART.items():
        parts.append(f"\n\nclass {command.capitalize()}Options(TypedDict, total=False):")
        parts.append(f'    """Options of ``{command}``."""\n')
        for option in _native.options(command):
            name = option["name"].replace("-", "_")
            if name not in apart:
                parts.append(f"    {name}: {kind(option)} | None")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(printed(), end="")
