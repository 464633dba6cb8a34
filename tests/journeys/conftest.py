from __future__ import annotations

import pytest

from journeys.site import Site


@pytest.fixture
def site(tmp_path):
    """A place of its own for one journey; whatever it started is gone afterwards."""
    made = Site(tmp_path)
    yield made
    made.close()
