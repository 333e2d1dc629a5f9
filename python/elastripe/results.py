"""What runs come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas


class Result(dict[str, Any]):
    """What a run came to: a ``dict`` with the keys of the command's ``--json``, units in their names.

    ``docs/simulate.md``, ``docs/replay.md``, ``docs/flash.md``, ``docs/reliability.md`` and
    ``docs/python.md`` say what they are."""

    def frame(self) -> pandas.DataFrame:
        """The result as a pandas DataFrame.

        A row for each cell of ``compare`` and ``sweep``, for each array of ``reliability``, else a single
        one; nested keys are joined by points, lists of devices are left out (see ``devices``)."""
        import pandas

        if "cells" in self:
            table = pandas.DataFrame(self["cells"])
            for column in table.columns:
                table[column] = _numbers(table[column])
            return table
        rows = self["rows"] if "rows" in self else [self]
        flat = [
            {key: value for key, value in _flat(row).items() if not isinstance(value, list)} for row in rows
        ]
        return pandas.DataFrame(flat)

    def devices(self) -> pandas.DataFrame:
        """The devices of an array, a row for each."""
        import pandas

        return pandas.DataFrame([_flat(device) for device in self.get("devices", [])])


def _numbers(column: Any) -> Any:
    """A column of texts that are all numbers, as numbers."""
    import pandas

    try:
        return pandas.to_numeric(column)
    except (ValueError, TypeError):
        return column


def _flat(value: dict[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, part in value.items():
        if isinstance(part, dict):
            found.update(_flat(part, f"{before}{key}."))
        else:
            found[f"{before}{key}"] = part
    return found
