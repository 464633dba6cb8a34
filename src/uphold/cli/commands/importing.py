"""`uphold import`: translate the file of another supervisor; it is printed, nothing is started."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from uphold.cli.speaking import print_document, say
from uphold.core.texts import printable
from uphold.errors import EXIT_DONE

if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="supervisord.conf, Procfile, process-compose.yaml or a systemd .service",
    )
    parser.add_argument(
        "--as",
        dest="kind",
        metavar="KIND",
        help="what it is: supervisord, procfile, process-compose or systemd",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the TOML to this file")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


def run(args: argparse.Namespace) -> int:
    """Print the configuration, and beside it what became of every setting."""
    from uphold.cli.imports import Imported, refuse_other_languages, tell_problems, tell_report
    from uphold.cli.writing import write_new

    output = None if args.output is None else os.path.abspath(args.output)  # noqa: PTH100
    if output is not None:
        refuse_other_languages(output)
    imported = Imported.read(args.file, args.kind, output)
    if output is not None:
        write_new(output, imported.toml, replace=args.force)
    if args.json:
        print_document(imported.document(output))
        return EXIT_DONE
    tell_report(args, imported)
    if output is None:
        sys.stdout.write(imported.toml)
    else:
        tell_problems(args, output)
        say(
            args,
            f"wrote {printable(output)}; look at it, then: uphold -c {printable(output)} check",
        )
    return EXIT_DONE
