"""Which supervisor a file was written for: by its name, else by what is in it."""

from __future__ import annotations

import re
from typing import Final

KINDS: Final = ("supervisord", "procfile", "process-compose", "systemd")
_NAMES: Final = (
    ("supervisord", re.compile(r"supervisord?\.conf|.*\.supervisor(?:d)?\.(?:conf|ini)")),
    ("procfile", re.compile(r"procfile(?:\..+)?|.+\.procfile")),
    ("process-compose", re.compile(r"process-compose(?:[.-].+)?\.ya?ml")),
    ("systemd", re.compile(r".+\.service")),
)
_CONTENTS: Final = (
    ("supervisord", re.compile(r"^\[(?:program:|group:|supervisord\])", re.MULTILINE)),
    ("systemd", re.compile(r"^\[Service\]\s*$", re.MULTILINE)),
    ("process-compose", re.compile(r"^processes:\s*(?:#.*)?$", re.MULTILINE)),
)
_PROCFILE_LINE: Final = re.compile(r"[A-Za-z0-9_-]+:\s+\S.*")
_MOST_LOOKED_AT: Final = 200


def recognise(name: str, text: str) -> str | None:
    """Tell the kind of a file; None if nothing speaks for one."""
    for kind, pattern in _NAMES:
        if pattern.fullmatch(name.lower()):
            return kind
    for kind, pattern in _CONTENTS:
        if pattern.search(text):
            return kind
    return "procfile" if _is_procfile(name, text) else None


def _is_procfile(name: str, text: str) -> bool:
    """Tell whether every line is `name: command`; YAML and the like would often pass, too."""
    if "." in name:
        return False
    lines = [line for line in text.splitlines()[:_MOST_LOOKED_AT] if line.strip()]
    told = [line for line in lines if not line.startswith("#")]
    return bool(told) and all(_PROCFILE_LINE.fullmatch(line) for line in told)
