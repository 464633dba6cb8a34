"""The systemd unit that runs a supervisor: made from its file, so that its limits are right."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from typing import Final

from uphold.core.declaring import Declaration, Entry
from uphold.core.dependencies import longest_grace
from uphold.core.specs import Settings

_MARGIN: Final = 15.0
"""Seconds beyond the longest stop: the supervisor kills, verifies and writes things down."""
_LEAST_WATCHDOG: Final = 90.0
_PASSES: Final = 3
"""How many full looks may be missed before systemd takes the supervisor for dead."""
_ROOT: Final = "root"
_ENDS: Final = {
    "stop": "It ends them itself, in order, and verifies it (on_exit).",
    "keep": "It leaves them running, and the next one adopts them (on_exit).",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What a unit is made of."""

    program: tuple[str, ...]
    config: str
    home: str
    settings: Settings
    user: str | None
    """Whom it runs as; None leaves that to the service manager."""
    for_user: bool
    """For the service manager of a user, not that of the machine."""

    @property
    def name(self) -> str:
        """What the file should be called."""
        return f"uphold-{re.sub(r'[^A-Za-z0-9_.-]', '-', self.settings.supervisor.name)}.service"

    def text(self) -> str:
        """Write the unit."""
        folder = "~/.config/systemd/user" if self.for_user else "/etc/systemd/system"
        manager = "systemctl --user" if self.for_user else "systemctl"
        target = "default" if self.for_user else "multi-user"
        lines = [
            f"# {folder}/{self.name}",
            f"# {manager} daemon-reload && {manager} enable --now {self.name}",
            "[Unit]",
            f"Description=uphold keeps {_escaped(self.settings.supervisor.name)} running",
            "After=network.target",
            "",
            "[Service]",
            *self._service(),
            "",
            "[Install]",
            f"WantedBy={target}.target",
        ]
        return "".join(f"{line}\n" for line in lines)

    def _service(self) -> list[str]:
        words = (*self.program, "-c", self.config, "--home", self.home, "run", "--quiet")
        grace = longest_grace(_declared(self.settings))
        lines = [
            "Type=notify",
            "# Quiet, and with somebody to notify, `uphold run` becomes the supervisor itself.",
            "NotifyAccess=main",
            f"ExecStart={' '.join(map(_word, words))}",
            "ExecReload=/bin/kill -HUP $MAINPID",
            "# The supervisor alone gets the signal; with another mode its death would be that of",
            f"# every worker. {_ENDS[self.settings.supervisor.on_exit]}",
            "KillMode=process",
            f"TimeoutStopSec={grace + _MARGIN:g}",
            "Restart=on-failure",
            "RestartSec=1",
            "# Usage, permission and configuration are not mended by trying again.",
            "RestartPreventExitStatus=2 4 6",
            f"WatchdogSec={self._watchdog():g}",
        ]
        if self.user is not None and self.user != _ROOT:
            lines.insert(0, f"User={self.user}")
        if self._needs_groups():
            lines += ["# Workers have control groups of their own.", "Delegate=yes"]
        return lines

    def _watchdog(self) -> float:
        return max(_LEAST_WATCHDOG, _PASSES * self.settings.supervisor.reconcile_every)

    def _needs_groups(self) -> bool:
        return any(
            spec.containment == "group" or spec.limits.processes is not None
            for spec in self.settings.workers
        )


def own_program() -> tuple[str, ...]:
    """Say how this very uphold is started, by full path."""
    folder = os.path.dirname(sys.executable)  # noqa: PTH120 - text is enough
    script = os.path.join(folder, "uphold")  # noqa: PTH118
    if os.access(script, os.X_OK):
        return (script,)
    return (sys.executable, "-m", "uphold")


def current_user() -> str:
    """Name the user we run as."""
    import pwd

    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _declared(settings: Settings) -> Declaration:
    entries = {spec.name: Entry(spec=spec) for spec in settings.workers}
    return Declaration(workers=entries)


def _word(word: str) -> str:
    """Write one word of a command for systemd."""
    escaped = _escaped(word).replace("$", "$$")
    if re.search(r"[\s\"'\\;]", escaped):
        inner = escaped.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{inner}"'
    return escaped


def _escaped(text: str) -> str:
    return text.replace("%", "%%")
