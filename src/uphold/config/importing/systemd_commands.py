"""The `Exec…=` lines of a unit: one command, or a line for a shell if that is not enough."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from uphold.config.importing.reports import (
    NotImportable,
    Outcome,
    Setting,
    Terms,
    approximated,
    lost,
    translated,
)
from uphold.config.importing.wording import DOLLAR, shell_line, words_of

_PREFIXES: Final = "-@:+!|"
_SEVERAL: Final = re.compile(r"\s+;\s+")
_BRACED: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_WHOLE: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_LOST: Final = {
    "ExecStartPost": "nothing is run after a start; let a worker of its own wait (depends_on)",
    "ExecStopPost": "nothing is run after a stop; let the command end with it",
    "ExecCondition": "nothing is asked before a start; let the command do it and exit 0",
}


class _Command(NamedTuple):
    setting: Setting
    prefixes: str
    words: list[str]
    open: bool
    """Whether it asks for variables that are known only when it runs."""


class Commands:
    """Collects the lines that are run, and makes one command of them."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._before: list[_Command] = []
        self._main: list[_Command] = []
        self._stop: list[_Command] = []
        self._lost: list[tuple[Setting, str]] = []

    def takes(self, setting: Setting, value: str) -> bool:
        """Take a setting in, if it is one of these."""
        kept = {
            "ExecStart": self._main,
            "ExecStartPre": self._before,
            "ExecStop": self._stop,
        }.get(setting.name)
        if kept is not None:
            kept += [self._command(setting, part) for part in _SEVERAL.split(value)]
        elif setting.name == "ExecReload":
            self._lost.append((setting, _reload(value)))
        elif setting.name in _LOST:
            self._lost.append((setting, _LOST[setting.name]))
        else:
            return False
        return True

    def put_into(self, terms: Terms) -> Iterator[tuple[Setting, Outcome]]:
        """Write the command and the stop command, and judge every line."""
        for setting, why in self._lost:
            yield setting, lost(why)
        if self._main:
            yield from self._put_main(terms)
        if self._stop:
            yield from self._put_stop(terms)

    def _put_main(self, terms: Terms) -> Iterator[tuple[Setting, Outcome]]:
        first = self._main[0]
        if not self._before and len(self._main) == 1 and not first.open:
            line = shell_line(first.words)
            terms["command"] = line if line == " ".join(first.words) else _meant(first.words)
        else:
            *early, last = [*self._before, *self._main]
            lines = [
                f"{{ {_line(each)}{' || true' if '-' in each.prefixes else ''}; }}"
                for each in early
            ]
            terms["command"] = " && ".join([*lines, f"exec {_line(last)}"])
            terms["shell"] = True
        for each in self._before:
            yield each.setting, approximated("run by the shell before the program, each time")
        for each in self._main:
            yield each.setting, _judged(each, several=len(self._main) > 1)

    def _put_stop(self, terms: Terms) -> Iterator[tuple[Setting, Outcome]]:
        line = " && ".join(_line(each) for each in self._stop)
        if "$MAINPID" in line or "${MAINPID}" in line:
            for each in self._stop:
                yield (
                    each.setting,
                    lost(
                        "uphold gives the stop command no MAINPID; if it only sends a signal, say"
                        " which in stop.signal"
                    ),
                )
            return
        plain = len(self._stop) == 1 and not self._stop[0].open
        words = _meant(self._stop[0].words) if plain else ["sh", "-c", line]
        terms.setdefault("stop", {})["command"] = words
        for each in self._stop:
            yield each.setting, translated("stop.command")

    def _command(self, setting: Setting, value: str) -> _Command:
        rest = value.lstrip(_PREFIXES)
        prefixes = value[: len(value) - len(rest)]
        try:
            words = words_of(rest.replace("$$", DOLLAR))
        except ValueError as cause:
            raise NotImportable(setting.at, f"{setting.name} cannot be split: {cause}") from None
        if not words or not words[0]:
            raise NotImportable(setting.at, f"{setting.name} is empty")
        if ":" in prefixes:
            words = [word.replace("$", DOLLAR) for word in words]
        else:
            words = [self._filled(word) for word in words]
        asks = any(_BRACED.search(word) or _WHOLE.fullmatch(word) for word in words)
        return _Command(setting, prefixes, words, asks)

    def _filled(self, word: str) -> str:
        """Put in the variables that the unit itself sets."""

        def known(match: re.Match[str]) -> str:
            value = self._variables.get(match[1])
            return match[0] if value is None else value.replace("$", DOLLAR)

        if whole := _WHOLE.fullmatch(word):
            value = self._variables.get(whole[1])
            # A variable that is a word of its own may become several.
            return word if value is None or len(value.split()) != 1 else known(whole)
        return _BRACED.sub(known, word)


def _judged(command: _Command, *, several: bool) -> Outcome:
    remarks = []
    if several:
        remarks.append("all of them one after the other, by the shell")
    if command.open:
        remarks.append("by the shell, which puts the variables in")
    if "-" in command.prefixes:
        remarks.append("a failure counts as one here, as '-' has no counterpart")
    if set(command.prefixes) & set("+!@|"):
        remarks.append("the special prefix was left out")
    if remarks:
        return approximated(f"command; {'; '.join(remarks)}")
    return translated("command")


def _line(command: _Command) -> str:
    return " ".join(_shell_word(word) for word in command.words)


def _shell_word(word: str) -> str:
    if _WHOLE.fullmatch(word):
        return word
    pieces: list[str] = []
    end = 0
    for match in _BRACED.finditer(word):
        if match.start() > end:
            pieces.append(shlex.quote(_plain(word[end : match.start()])))
        pieces.append(f'"{match[0]}"')
        end = match.end()
    if end < len(word) or not word:
        pieces.append(shlex.quote(_plain(word[end:])))
    return "".join(pieces)


def _meant(words: list[str]) -> list[str]:
    return [_plain(word) for word in words]


def _plain(text: str) -> str:
    return text.replace(DOLLAR, "$")


def _reload(value: str) -> str:
    match = re.search(r"\bkill\s+-(?:s\s+)?(?:SIG)?([A-Z0-9]+)\s+\$\{?MAINPID", value)
    if match:
        return f"there is no reload of workers; `uphold signal NAME {match[1]}` does the same"
    return "there is no reload of workers; run the command by hand, or `uphold signal NAME HUP`"
