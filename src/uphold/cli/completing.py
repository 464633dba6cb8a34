"""Completion scripts, made from the parsers themselves so that they cannot fall behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uphold.cli.parsers import parser_of
from uphold.cli.verbs import VERBS

if TYPE_CHECKING:
    from collections.abc import Callable

_ASKED: Final = (
    "status --kv --all --timeout 1s 2>/dev/null | sed -n 's/^worker:\\([^.=]*\\)\\.state=.*/\\1/p'"
)
"""How a shell learns the names of workers: from the output that is made for scripts.

A supervisor that does not answer must not keep anybody from typing on.
"""
_NAMES: Final = f"uphold {_ASKED}"
_WITH_NUMBER: Final = f"{_NAMES} | sed 's/$/=/'"
"""How they begin what `scale` takes: NAME=N."""


def options_of(verb: str) -> list[tuple[str, str]]:
    """List the long options of a verb with what they do."""
    found = []
    for action in parser_of(verb)._actions:  # noqa: SLF001 - argparse has no public way to ask
        found += [
            (option, action.help or "")
            for option in action.option_strings
            if option.startswith("--")
        ]
    return sorted(found)


def choices_of(verb: str) -> list[str]:
    """List the words that a verb wants one of: the shells of `completion`, the verbs of `db`."""
    actions = parser_of(verb)._actions  # noqa: SLF001 - argparse has no public way to ask
    return [str(word) for each in actions if not each.option_strings for word in each.choices or ()]


def _words(verb: str) -> list[str]:
    return [*choices_of(verb), *(name for name, _ in options_of(verb))]


def takes_names(verb: str) -> bool:
    """Tell whether workers can be named after a verb."""
    actions = parser_of(verb)._actions  # noqa: SLF001 - argparse has no public way to ask
    return any(each.dest in ("name", "names") and not each.option_strings for each in actions)


def takes_numbers(verb: str) -> bool:
    """Tell whether it is NAME=N that follows a verb."""
    actions = parser_of(verb)._actions  # noqa: SLF001 - argparse has no public way to ask
    return any(action.metavar == "NAME=N" for action in actions)


def _named(verb: str, variable: str) -> str:
    """Write what a script notes about a verb that takes names."""
    if takes_numbers(verb):
        return f"; {variable}=2"
    return f"; {variable}=1" if takes_names(verb) else ""


def bash() -> str:
    """Write the script for bash."""
    asked = f'"${{asked[@]}}" {_ASKED}'
    cases = "\n".join(
        f"        {verb}) words={_quoted(' '.join(_words(verb)))}{_named(verb, 'names')} ;;"
        for verb in VERBS
    )
    return f"""# bash completion for uphold: source <(uphold completion bash)
_uphold() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" verb="" word words="" names="" at asked=(uphold)
    for ((at = 1; at < COMP_CWORD; at++)); do
        word="${{COMP_WORDS[at]}}"
        case "$word" in
            -c | --config | --home)
                # A file or folder: bash completes it. Behind it, whose workers are meant.
                [[ "${{COMP_WORDS[at + 1]}}" == = ]] && ((at++))
                if ((at + 1 >= COMP_CWORD)); then COMPREPLY=(); return; fi
                ((++at))
                asked+=("$word" "${{COMP_WORDS[at]/#\\~\\//$HOME/}}")
                continue ;;
        esac
        case "$verb: {" ".join(VERBS)} " in ":"*" $word "*) verb="$word" ;; esac
    done
    case "$verb" in
        "") words={_quoted(" ".join(VERBS))} ;;
{cases}
    esac
    if [[ "$names" == 1 && "$current" != -* ]]; then
        words="$({asked})"
    elif [[ "$names" == 2 && "$current" != -* ]]; then
        words="$({asked} | sed 's/$/=/')"
        compopt -o nospace 2>/dev/null
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _uphold uphold
"""


def zsh() -> str:
    """Write the script for zsh."""
    verbs = "\n".join(f"        {_quoted(f'{verb}:{_flat(VERBS[verb])}')}" for verb in VERBS)
    cases = "\n".join(
        f"        {verb}) options=({' '.join(_words(verb))}){_named(verb, 'named')} ;;"
        for verb in VERBS
    )
    return f"""#compdef uphold
# zsh completion for uphold: uphold completion zsh > "${{fpath[1]}}/_uphold"
_uphold() {{
    local -a verbs options
    local verb="" word named=""
    verbs=(
{verbs}
    )
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        if (( ${{verbs[(I)$word:*]}} )); then verb="$word"; break; fi
    done
    if [[ -z "$verb" ]]; then _describe verb verbs; return; fi
    options=()
    case "$verb" in
{cases}
    esac
    if [[ "$named" == 1 ]]; then compadd -- ${{(f)"$({_NAMES})"}}; fi
    if [[ "$named" == 2 ]]; then compadd -S '' -- ${{(f)"$({_WITH_NUMBER})"}}; fi
    compadd -- $options
}}
compdef _uphold uphold
"""


def fish() -> str:
    """Write the script for fish."""
    lines = [
        "# fish completion for uphold: uphold completion fish | source",
        f"set -l verbs {' '.join(VERBS)}",
        "complete -c uphold -f",
    ]
    unset = "-n 'not __fish_seen_subcommand_from $verbs'"
    for verb, summary in VERBS.items():
        lines.append(f"complete -c uphold {unset} -a {verb} -d {_quoted(_flat(summary))}")
        after = f"-n '__fish_seen_subcommand_from {verb}'"
        if takes_numbers(verb):
            # A dollar would be fish's own within these quotes.
            lines.append(
                f'complete -c uphold {after} -a "({_WITH_NUMBER.replace("$", chr(92) + "$")})"'
            )
        elif takes_names(verb):
            lines.append(f'complete -c uphold {after} -a "({_NAMES})"')
        elif choices_of(verb):
            lines.append(f"complete -c uphold {after} -a {_quoted(' '.join(choices_of(verb)))}")
        lines += [
            f"complete -c uphold {after} -l {option.removeprefix('--')} -d {_quoted(_flat(told))}"
            for option, told in options_of(verb)
        ]
    return "\n".join(lines) + "\n"


SHELLS: Final[dict[str, Callable[[], str]]] = {"bash": bash, "zsh": zsh, "fish": fish}


def _quoted(text: str) -> str:
    escaped = text.replace("'", "'\\''")
    return f"'{escaped}'"


def _flat(text: str) -> str:
    """Leave out what shells would read as their own."""
    return text.replace("`", "").replace(":", ",").replace("'", "")
