from __future__ import annotations

import pytest

from servers import MariaDB, PostgreSQL, running


@pytest.fixture(scope="session")
def mariadb():
    with running(MariaDB) as server:
        yield server


@pytest.fixture(scope="session")
def postgresql():
    with running(PostgreSQL) as server:
        yield server


@pytest.fixture(params=["mariadb", "postgresql"])
def server(request):
    """Each of the two servers; whoever kills or freezes it starts it again."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def url(server):
    """The address of an empty database."""
    return server.fresh()
