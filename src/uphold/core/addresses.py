"""Addresses that probes ask: `host:port`, and URLs of http and https."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from uphold.patterns import pattern

_HIGHEST_PORT: Final = 65535
_HOST: Final = r"(\[[0-9A-Fa-f:.%]++\]|[^\s/?#@:\[\]]++)"
_URL: Final = pattern(rf"(https?)://{_HOST}(?::([0-9]{{1,5}}))?([/?][^\s#]*+)?(?:#\S*+)?")
_HOST_AND_PORT: Final = pattern(rf"(?:{_HOST}:)?([0-9]{{1,5}})")
_USUAL_PORT: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to connect to, and what to ask for there."""

    host: str
    port: int
    path: str = "/"
    secure: bool = False

    @property
    def authority(self) -> str:
        """How it is named in a request."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = _USUAL_PORT["https" if self.secure else "http"]
        return host if self.port == usual else f"{host}:{self.port}"


def parse_url(text: str) -> Address | None:
    """Read a URL of http or https without a name and password; None if it is none."""
    found = _URL.fullmatch(text)
    if found is None:
        return None
    scheme, host, port, path = found.groups()
    path = path or "/"
    number = int(port) if port else _USUAL_PORT[scheme]
    if not 0 < number <= _HIGHEST_PORT:
        return None
    return Address(
        host=host.strip("[]"),
        port=number,
        path=path if path.startswith("/") else f"/{path}",
        secure=scheme == "https",
    )


def parse_host_and_port(text: str) -> Address | None:
    """Read `host:port`, or a port of this machine; None if it is neither."""
    found = _HOST_AND_PORT.fullmatch(text)
    if found is None or not 0 < int(found[2]) <= _HIGHEST_PORT:
        return None
    return Address(host=(found[1] or "127.0.0.1").strip("[]"), port=int(found[2]))
