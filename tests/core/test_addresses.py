from __future__ import annotations

import pytest

from uphold.core.addresses import Address, parse_host_and_port, parse_url


@pytest.mark.parametrize(
    ("text", "address", "authority"),
    [
        ("http://a/", Address(host="a", port=80), "a"),
        ("http://127.0.0.1:8001", Address(host="127.0.0.1", port=8001), "127.0.0.1:8001"),
        ("http://a:81/x?y=1#z", Address(host="a", port=81, path="/x?y=1"), "a:81"),
        ("http://a?y", Address(host="a", port=80, path="/?y"), "a"),
        ("https://[::1]/h", Address(host="::1", port=443, path="/h", secure=True), "[::1]"),
    ],
)
def test_a_url_is_taken_apart(text, address, authority):
    assert parse_url(text) == address
    assert address.authority == authority


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "ftp://a/",
        "http://",
        "http://u:p@a/",
        "http://a:0/",
        "http://a:70000/",
        "http://a b/",
        "http://a/ b",
    ],
)
def test_what_is_no_url_is_refused(text):
    assert parse_url(text) is None


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("80", "127.0.0.1", 80), ("db:5432", "db", 5432), ("[::1]:1", "::1", 1)],
)
def test_host_and_port_are_taken_apart(text, host, port):
    assert parse_host_and_port(text) == Address(host=host, port=port)


@pytest.mark.parametrize("text", ["", "db", "db:", ":80", "db:0", "db:99999", "a/b:80", "1:2:3"])
def test_what_is_no_host_and_port_is_refused(text):
    assert parse_host_and_port(text) is None
