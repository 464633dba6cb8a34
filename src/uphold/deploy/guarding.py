"""The git program, with everything switched off that could run somebody else's code.

Repositories are content from elsewhere: no hook of theirs runs, no submodule is followed, no
protocol but the one of the checkout's own remote is spoken, and nobody is asked for anything.
Credential helpers and ssh keep working. What to do with git is decided elsewhere.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final, Protocol

from uphold.core.texts import printable
from uphold.errors import HostFailure
from uphold.host import commands

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from uphold.host.commands import Done

LIMIT: Final = 30.0
"""Seconds that one command of git gets."""
MOST: Final = 1 << 30
"""Bytes that one fetch may bring, and that an update may write into the checkout."""
_MEMORY: Final = 2 << 30
"""Bytes that one git may take: a small pack can hold what unpacks to any size."""
GIT_FAILED: Final = "UPH_DEPLOY_GIT_FAILED"
NO_GIT: Final = "UPH_DEPLOY_NO_GIT"
_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.fsync=all",  # a power cut leaves what was said to be done
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.fsckObjects=true",
    "fetch.unpackLimit=1",  # all that comes is one file, whose size the kernel limits
    "fetch.prune=false",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",  # it would go on behind our back, and beyond the limit
    "maintenance.auto=false",
    "merge.autoStash=false",
    "rerere.enabled=false",  # a conflict stays one
    "commit.gpgSign=false",
    "log.showSignature=false",
    "color.ui=false",
    "core.quotePath=false",
    "user.name=uphold",
    "user.email=uphold@localhost",
)
_PASSED: Final = (
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "XDG_*",
    "KRB5CCNAME",
    "GNUPGHOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    *(f"{what}_proxy" for what in ("http", "https", "no", "all")),
    *(f"{what}_PROXY" for what in ("HTTP", "HTTPS", "NO", "ALL")),
)
"""What ssh, credential helpers and proxies need; nothing that begins with GIT_ is among them."""
_OWN: Final = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": ":",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_PAGER": "cat",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    # ssh asks nobody: neither on a terminal that happens to be there nor on a screen.
    "SSH_ASKPASS": "false",
    "SSH_ASKPASS_REQUIRE": "force",
    "LC_ALL": "C",
    "LANGUAGE": "",
}
_IN_ADDRESS: Final = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_MOST_COMMANDS: Final = 200
_MOST_OF_ONE: Final = 4_000


class Run(Protocol):
    """Runs a program to its end (`host.commands.run`)."""

    def __call__(  # noqa: PLR0913 - as the one it stands for
        self,
        argv: Sequence[str],
        *,
        cwd: str | os.PathLike[str],
        limit: float = ...,
        environment: Mapping[str, str] | None = ...,
        input: bytes = ...,  # noqa: A002
        most: int = ...,
        keep: Sequence[int] = ...,
        allowance: commands.Allowance | None = ...,
    ) -> Done:
        """Run it; never raises."""
        ...


class Transcript:
    """Every command that was run and what it said, bounded and without passwords."""

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        """`tell` is given each command with its output as soon as it has ended."""
        self.commands: list[dict[str, object]] = []
        self._tell = tell

    def add(self, done: Done, shown: str) -> None:
        """Note one command."""
        said = "\n".join(part.strip() for part in (done.stdout, done.stderr) if part.strip())
        text = without_passwords(said)
        if len(text) > _MOST_OF_ONE:
            text = f"{text[: _MOST_OF_ONE // 2]}\n…\n{text[-_MOST_OF_ONE // 2 :]}"
        told: dict[str, object] = {
            "command": shown,
            "returncode": done.returncode,
            "timed_out": done.timed_out,
            "output": readable(text),
        }
        if len(self.commands) < _MOST_COMMANDS:
            self.commands.append(told)
        if self._tell is not None:
            self._tell(f"{shown}: {done.error or 'done'}\n{told['output']}".rstrip())


class Git:
    """Runs git in one checkout."""

    def __init__(
        self,
        repo: str,
        run: Run = commands.run,
        transcript: Transcript | None = None,
        inherited: Mapping[str, str] = os.environ,
        *,
        most: int = MOST,
    ) -> None:
        self.repo = repo
        self.most = most
        """Bytes of the largest file that git may write here, a pack or one of the checkout."""
        self.transcript = transcript or Transcript()
        self.protocol = ""
        """The one protocol that may be spoken; none while it is empty."""
        self.keep: tuple[int, ...] = ()
        """Descriptors that every git inherits, so that one left over can be seen."""
        self._run = run
        self._inherited = inherited

    def ask(
        self,
        *words: str,
        given: bytes = b"",
        most: int = commands.MOST,
        quiet: bool = True,
        local: bool = False,
    ) -> Done:
        """Run git with these words and tell how it went; what is `quiet` and well is not noted.

        What is `local` writes what was there before, and may do so however large its files are.
        """
        argv = ["git", *(part for one in _SETTINGS for part in ("-c", one)), *words]
        done = self._run(
            argv,
            cwd=self.repo,
            limit=LIMIT,
            environment=self._environment(),
            input=given,
            most=most,
            keep=self.keep,
            allowance=commands.Allowance(None if local else self.most, _MEMORY),
        )
        if not quiet or not done.ok:
            self.transcript.add(done, "git " + readable(" ".join(words)))
        return done

    def must(
        self, *words: str, given: bytes = b"", most: int = commands.MOST, quiet: bool = True
    ) -> str:
        """Run git with these words and give what it said; HostFailure if it failed."""
        done = self.ask(*words, given=given, most=most, quiet=quiet)
        if not done.ok:
            raise failure(done, words[0])
        if not done.whole:
            raise HostFailure(f"git {words[0]} said more than can be read.", code=GIT_FAILED)
        return done.stdout

    def _environment(self) -> dict[str, str]:
        own = {**_OWN, "GIT_ALLOW_PROTOCOL": self.protocol}
        return commands.clean_environment(self._inherited, _PASSED, **own)


def failure(done: Done, verb: str) -> HostFailure:
    """Say in a sentence why git failed, in its own words where it had some."""
    if done.returncode is None:
        return HostFailure(
            f"git cannot be run: {done.error}",
            code=NO_GIT,
            remedy="Install git, or put it into the PATH of the supervisor.",
        )
    if done.timed_out:
        return HostFailure(
            f"git {verb} did not end within {LIMIT:g} s and was ended.",
            code=GIT_FAILED,
            remedy="Is the remote reachable from this machine, without anybody being asked?",
        )
    said = readable(without_passwords((done.stderr.strip() or done.stdout.strip())[-1000:]))
    return HostFailure(f"git {verb} failed: {said or done.error}", code=GIT_FAILED)


def without_passwords(text: str) -> str:
    """Take the name and password out of every address in a text."""
    return _IN_ADDRESS.sub("***", text)


def readable(text: str) -> str:
    """Make text from elsewhere safe to show, line by line."""
    return "\n".join(printable(line) for line in text.splitlines())
