"""Where updates may come from: an allow-list of what a remote's address can look like."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from uphold.core.texts import printable
from uphold.deploy.guarding import without_passwords
from uphold.errors import NotPermitted

REMOTE: Final = "UPH_DEPLOY_REMOTE"
_SHAPES: Final = (
    ("https", re.compile(r"https://(?:[^/@\s]+@)?[A-Za-z0-9\[][^\s/]*/\S+")),
    ("ssh", re.compile(r"ssh://(?:[A-Za-z0-9_][^/@\s]*@)?[A-Za-z0-9\[][^\s/]*/\S+")),
    ("ssh", re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:(?![:-])\S+")),
    ("file", re.compile(r"/[^\0-\x1f\x7f]*")),
)
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}")
_NEVER: Final = ("..", "//", "@{", "/.", "./", ".lock/")
_ID: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Address(NamedTuple):
    """An address that is allowed, and the protocol git speaks to reach it."""

    shown: str
    """Without name and password."""
    protocol: str


def allowed(url: str) -> Address:
    """Judge an address; NotPermitted unless it is https, ssh, scp-like or an absolute path."""
    for protocol, shape in _SHAPES:
        if shape.fullmatch(url):
            return Address(without_passwords(url), protocol)
    raise NotPermitted(
        f"updates may not come from '{printable(without_passwords(url))}'.",
        code=REMOTE,
        remedy="Allowed are https://…, ssh://…, user@host:path and absolute paths: "
        "git remote set-url …",
    )


def is_plain_name(name: str) -> bool:
    """Tell whether this can only be the name of a remote or a branch, never an option or range."""
    fine = _NAME.fullmatch(name) and not any(part in name for part in _NEVER)
    return bool(fine) and not name.endswith((".", "/", ".lock"))


def is_id(text: str) -> bool:
    """Tell whether this is the full id of a commit."""
    return _ID.fullmatch(text) is not None
