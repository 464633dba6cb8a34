"""`uphold init`: write a commented starter configuration."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from uphold.cli.arguments import usage_error
from uphold.cli.speaking import print_document, say
from uphold.core.texts import printable
from uphold.errors import EXIT_DONE, HostFailure, NotPermitted

if TYPE_CHECKING:
    import argparse

_LATER: Final = "Procfile, supervisord.conf and mcp.json"


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument("--full", action="store_true", help="show every key, not only the first")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    parser.add_argument(
        "--from",
        dest="origin",
        metavar="FILE",
        help="import another supervisor's file (comes with a later version)",
    )


def run(args: argparse.Namespace) -> int:
    """Write the file where `start` will look for it."""
    from uphold.config.templates import starter

    if args.origin is not None:
        raise usage_error(
            f"importing '{args.origin}' comes with a later version.",
            f"Importers for {_LATER} are planned; `uphold init` writes a plain starter now.",
        )
    path = os.path.abspath(args.config or "uphold.toml")  # noqa: PTH100 - strings throughout
    language = "yaml" if path.endswith((".yaml", ".yml")) else "toml"
    text = starter("full" if args.full else "minimal", language)
    _write(path, text, replace=args.force)
    if args.json:
        print_document({"schema": 1, "file": path})
    else:
        say(args, f"wrote {printable(path)}; look at it, then: uphold start")
    return EXIT_DONE


def _write(path: str, text: str, *, replace: bool) -> None:
    how = os.O_TRUNC if replace else os.O_EXCL
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, 0o644)
    except FileExistsError as cause:
        raise NotPermitted(
            f"{path} is there already and was left as it is.",
            code="UPH_FILE_EXISTS",
            remedy="Use --force to replace it, or -c to write another file.",
        ) from cause
    except OSError as cause:
        raise HostFailure(
            f"cannot write {path}: {cause.strerror}.",
            remedy="Is the folder there, and may you write to it?",
        ) from cause
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
