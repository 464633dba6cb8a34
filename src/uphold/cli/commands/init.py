"""`uphold init`: write a commented starter configuration, or one made from another's file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from uphold.cli.arguments import usage_error
from uphold.cli.speaking import print_document, say
from uphold.cli.writing import write_new
from uphold.core.texts import printable
from uphold.errors import EXIT_DONE

if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument("--full", action="store_true", help="show every key, not only the first")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    parser.add_argument(
        "--from",
        dest="origin",
        metavar="FILE",
        help="import supervisord.conf, Procfile, process-compose.yaml or a systemd unit",
    )
    parser.add_argument(
        "--as", dest="kind", metavar="KIND", help="what the file is, if it cannot be told"
    )


def run(args: argparse.Namespace) -> int:
    """Write the file where `start` will look for it."""
    if args.origin is not None:
        return _run_import(args)
    if args.kind is not None:
        raise usage_error("--as needs --from FILE.", "See `uphold init --help`.")
    from uphold.config.templates import starter

    path = os.path.abspath(args.config or "uphold.toml")  # noqa: PTH100 - strings throughout
    language = "yaml" if path.endswith((".yaml", ".yml")) else "toml"
    text = starter("full" if args.full else "minimal", language)
    write_new(path, text, replace=args.force)
    if args.json:
        print_document({"schema": 1, "file": path})
    else:
        say(args, f"wrote {printable(path)}; look at it, then: uphold start")
    return EXIT_DONE


def _run_import(args: argparse.Namespace) -> int:
    from uphold.cli.imports import Imported, refuse_other_languages, tell_problems, tell_report

    beside = os.path.join(os.path.dirname(args.origin), "uphold.toml")  # noqa: PTH118, PTH120
    path = os.path.abspath(args.config or beside)  # noqa: PTH100 - strings throughout
    refuse_other_languages(path)
    imported = Imported.read(args.origin, args.kind, path)
    write_new(path, imported.toml, replace=args.force)
    if args.json:
        print_document(imported.document(path))
        return EXIT_DONE
    tell_report(args, imported)
    tell_problems(args, path)
    say(args, f"wrote {printable(path)}; look at it, then: uphold -c {printable(path)} start")
    return EXIT_DONE
