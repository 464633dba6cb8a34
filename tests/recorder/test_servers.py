"""The servers that the other tests here rely on."""

from __future__ import annotations

import pytest


@pytest.mark.accepts("T13")
def test_a_server_keeps_its_rows_when_it_is_killed_and_started_again(server, url):
    database = url.rpartition("/")[2]
    server.run("CREATE TABLE kept (id INTEGER PRIMARY KEY)", database)
    server.run("INSERT INTO kept VALUES (1)", database)
    server.kill()
    assert not server.greets()
    server.start()
    assert server.run("SELECT id FROM kept", database) == [(1,)]
