from __future__ import annotations

import pytest

from runner.nurseries import Nursery


@pytest.fixture
def nursery(tmp_path):
    made = Nursery(tmp_path)
    yield made
    made.close()
