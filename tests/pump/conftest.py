"""Fixtures of the pump's tests."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from pump.homes import PumpHome


@pytest.fixture
def home(tmp_path: Path) -> Iterator[PumpHome]:
    place = PumpHome(tmp_path / "home")
    yield place
    place.close()


@pytest.fixture
def seeded() -> random.Random:
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed: {seed}")
    return random.Random(seed)
