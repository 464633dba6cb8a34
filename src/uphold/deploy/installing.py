"""Installing what the code needs, by pip, for the interpreter that the workers use."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uphold.deploy.guarding import Git, Run, readable, without_passwords
from uphold.errors import HostFailure
from uphold.host import commands

if TYPE_CHECKING:
    from uphold.host.commands import Done

INSTALL_FAILED: Final = "UPH_DEPLOY_INSTALL_FAILED"
LIMIT: Final = 600.0
"""Seconds: packages come from far away and may have to be built."""
_MANAGED: Final = (
    "import os, sys, sysconfig; marker = os.path.join(sysconfig.get_path('stdlib'), "
    "'EXTERNALLY-MANAGED'); print(sys.prefix == sys.base_prefix and os.path.exists(marker))"
)
"""Asks an interpreter whether its packages belong to the system's package manager."""
_PASSED: Final = (
    "PIP_*",
    "XDG_*",
    "VIRTUAL_ENV",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    *(f"{what}_proxy" for what in ("http", "https", "no", "all")),
    *(f"{what}_PROXY" for what in ("HTTP", "HTTPS", "NO", "ALL")),
)
_LONGEST: Final = 1 << 20
_PINNED: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._, -]*\])?\s*==\s*[A-Za-z0-9._!+-]+(\s*;[^@/\\]*)?"
)
"""A name, perhaps with extras, one version, and perhaps a condition."""


@dataclass(frozen=True, slots=True)
class Installer:
    """Installs the requirements of one checkout."""

    git: Git
    """Whose checkout, transcript and lock are used."""
    python: str = "python3"
    requirements: str = "requirements.txt"
    strict: bool = False
    limit: float = LIMIT
    run: Run = commands.run

    def install(self) -> None:
        """Install what the file asks for as it stands now; HostFailure if anything goes wrong."""
        path = self._file()
        if self.strict:
            _check_pinned(path)
        words = [self.python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        if self._is_managed():
            words.append("--break-system-packages")
        if self.strict:
            words += ["--require-hashes", "--only-binary", ":all:"]
        done = self._run([*words, "-r", self.requirements], self.limit)
        self.git.transcript.add(done, " ".join(words[1:]) + f" -r {self.requirements}")
        if not done.ok:
            raise _failed(done)

    def _file(self) -> Path:
        path = Path(self.git.repo, self.requirements)
        top = os.path.realpath(self.git.repo)
        if not path.is_file() or not os.path.realpath(path).startswith(f"{top}/"):
            raise HostFailure(
                f"there is no file {self.requirements} in {self.git.repo}.",
                code=INSTALL_FAILED,
                remedy="Add it to the repository, or correct deploy.requirements.",
            )
        return path

    def _is_managed(self) -> bool:
        return self._run([self.python, "-I", "-c", _MANAGED], 30.0).stdout.strip() == "True"

    def _run(self, argv: list[str], limit: float) -> Done:
        environment = commands.clean_environment(os.environ, _PASSED, PYTHONUNBUFFERED="1")
        repo, keep = self.git.repo, self.git.keep
        return self.run(argv, cwd=repo, limit=limit, environment=environment, keep=keep)


def _check_pinned(path: Path) -> None:
    """Refuse whatever is not a name, a version and hashes: options and addresses fetch code."""
    text = path.read_bytes()[:_LONGEST].decode(errors="replace").replace("\\\n", " ")
    for line in text.splitlines():
        wanted = re.sub(r"\s--hash=\S+", "", line.partition(" #")[0]).strip()
        if wanted and not wanted.startswith("#") and not _PINNED.fullmatch(wanted):
            raise HostFailure(
                f"{path.name} asks for '{readable(wanted[:100])}', which is not a pinned package.",
                code=INSTALL_FAILED,
                remedy='With deploy.pip = "strict" each line is name==version --hash=….',
            )


def _failed(done: Done) -> HostFailure:
    if done.returncode is None or done.timed_out:
        return HostFailure(f"packages were not installed: {done.error}", code=INSTALL_FAILED)
    lines = (done.stderr.strip() or done.stdout.strip() or done.error).splitlines()
    errors = [line for line in lines if line.startswith("ERROR: ")]  # warnings are in the log
    said = readable(without_passwords(" ".join((errors or lines)[-5:])))
    return HostFailure(
        f"packages were not installed, pip ended with {done.returncode}: {said}",
        code=INSTALL_FAILED,
    )
