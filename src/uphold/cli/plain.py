"""Command lines as people mostly write them, read without `argparse`: that costs 4 ms.

A verb declares its arguments to `Plain` as it would to a parser. Whatever is not plain (a mistake,
`--help`, `--option=value`, a declaration that is not known here) is left to the full parser, which
then understands or explains it; so this may give up at any time, but must never understand a line
in another way.
"""

from __future__ import annotations

from types import SimpleNamespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any, Final


_ACTIONS: Final = ("store", "store_true", "append")
_ONLY_FOR_HELP: Final = {"help", "metavar"}
_KNOWN: Final = {"action", "choices", "default", "dest", "nargs", "type", *_ONLY_FOR_HELP}


class NotPlain(Exception):  # noqa: N818 - nobody sees it
    """The full parser has to look at this."""


class Argument:
    """One option, or one word that stands for itself."""

    __slots__ = ("action", "choices", "convert", "default", "dest", "nargs")

    def __init__(self, names: Sequence[str], about: dict[str, Any]) -> None:
        if not about.keys() <= _KNOWN:
            raise NotPlain
        long = next((name for name in names if name.startswith("--")), names[0])
        self.dest: str = about.get("dest") or long.removeprefix("--").replace("-", "_")
        self.action: str = about.get("action", "store")
        self.nargs: str | None = about.get("nargs")
        self.convert: Callable[[str], Any] | None = about.get("type")
        self.default: Any = False if self.action == "store_true" else about.get("default")
        self.choices: Collection[Any] | None = about.get("choices")
        odd = self.convert is not None and isinstance(self.default, str)  # argparse converts it
        if odd or self.action not in _ACTIONS or (long[0] == "-" and long[1] != "-"):
            raise NotPlain

    def value(self, text: str) -> Any:
        """Read what was written; what it refuses is explained by the full parser."""
        try:
            value = text if self.convert is None else self.convert(text)
        except Exception as cause:  # whatever it is, argparse has a word for it
            raise NotPlain from cause
        if self.choices is not None and value not in self.choices:
            raise NotPlain
        return value


class Plain:
    """Knows what may stand on the command line of one verb."""

    def __init__(self) -> None:
        self._options: dict[str, Argument] = {}
        self._words: list[Argument] = []

    def add_argument(self, *names: str, **about: Any) -> None:
        """Declare an option or a word, as to `argparse`."""
        argument = Argument(names, about)
        if not names[0].startswith("-"):
            self._words.append(argument)
        elif argument.nargs is not None:
            raise NotPlain
        else:
            self._options.update(dict.fromkeys(names, argument))

    def add_argument_group(self, _title: str) -> Plain:
        """Declare more of the same: groups matter to those who ask for help."""
        return self

    def __getattr__(self, name: str) -> Any:
        raise NotPlain

    def parse(self, words: Sequence[str]) -> SimpleNamespace:
        """Read the words, or give up."""
        every = [*self._options.values(), *self._words]
        found = SimpleNamespace(**{each.dest: each.default for each in every})
        texts: list[str] = []
        closed = False
        rest = iter(words)
        for word in rest:
            if not word.startswith("-"):
                if closed:
                    raise NotPlain  # words before and after an option: argparse has its ways
                texts.append(word)
                continue
            closed = bool(texts)
            option = self._options.get(word)
            if option is None:
                raise NotPlain
            _take(option, rest, found)
        _assign(self._words, texts, found)
        return found


def _take(option: Argument, rest: Any, found: SimpleNamespace) -> None:
    if option.action == "store_true":
        setattr(found, option.dest, True)
        return
    text = next(rest, "-")
    if text.startswith("-"):
        raise NotPlain
    value = option.value(text)
    if option.action == "append":
        value = [*(getattr(found, option.dest) or ()), value]
    setattr(found, option.dest, value)


def _assign(declared: list[Argument], texts: list[str], found: SimpleNamespace) -> None:
    """Give the words that stand for themselves to those that were declared."""
    if all(word.nargs is None for word in declared):
        if len(texts) != len(declared):
            raise NotPlain
        for word, text in zip(declared, texts, strict=True):
            setattr(found, word.dest, word.value(text))
        return
    if len(declared) > 1:
        raise NotPlain
    (word,) = declared
    if word.nargs in ("*", "+") and (texts or (word.nargs == "*" and word.default is None)):
        setattr(found, word.dest, [word.value(text) for text in texts])
    elif word.nargs == "?" and len(texts) == 1:
        setattr(found, word.dest, word.value(texts[0]))
    elif word.nargs != "?" or texts or isinstance(word.default, str):
        raise NotPlain
