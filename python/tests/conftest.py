"""What all tests use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import elastripe

PYTHON = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PYTHON / "examples"))


@pytest.fixture(scope="session")
def zipf() -> elastripe.Trace:
    """20,000 writes of 4 KiB on 8 MiB."""
    return elastripe.generate("zipf:0.99", requests=20_000, range="8MiB", seed=3)
