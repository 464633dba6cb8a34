"""Where a command begins and ends: parsing, dispatch, and the one place that reports errors."""

from __future__ import annotations

import errno
import gc
import os
import sys

from uphold.errors import EXIT_FAILED, EXIT_NOT_PERMITTED, UpholdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Final

EXIT_INTERRUPTED: Final = 130
EXIT_PIPE_CLOSED: Final = 141
"""What a shell reports for a program that SIGPIPE ended; `head` closing early is no mistake."""

_OUTPUT_LOST: Final = frozenset({errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG})
_MANY_OBJECTS: Final = 100_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and tell its exit code; as a program of its own, end with it."""
    if argv is not None:
        return run_command(argv)
    _fill_closed_streams()
    _let_any_character_out()
    # A command is over before tidying up pays: objects are not searched for cycles meanwhile
    # (2 ms of 50), and the interpreter is not taken apart at the end (6 ms).
    gc.set_threshold(_MANY_OBJECTS)
    code = run_command(sys.argv[1:])
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        code = EXIT_PIPE_CLOSED
    except OSError:
        code = code or EXIT_FAILED  # said already, where it could be
    os._exit(code)


def run_command(words: Sequence[str]) -> int:
    """Run one command and report what goes wrong; nothing but an exit code comes out."""
    # Known before parsing, so that a mistake on the command line is reported in JSON too.
    as_json = "--json" in words
    args = None
    try:
        from uphold.cli.arguments import command_of, parse

        args = parse(words)
        code = int(command_of(args.verb).run(args))
        sys.stdout.flush()
    except UpholdError as error:
        return _report(error, as_json=as_json)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return EXIT_PIPE_CLOSED
    except PermissionError as error:
        return _report(_denied(error), as_json=as_json)
    except OSError as error:
        if error.filename is None and error.errno in _OUTPUT_LOST:
            return _report(_unwritten(error), as_json=False)
        return _report(_unexpected(error, args), as_json=as_json)
    except SystemExit as leaving:
        # Only argparse leaves this way, after --help and --version.
        return leaving.code if isinstance(leaving.code, int) else 0
    except Exception as error:  # noqa: BLE001 - the boundary: nobody shall see a wall of text
        return _report(_unexpected(error, args), as_json=as_json)
    return code


def _report(error: UpholdError, *, as_json: bool) -> int:
    from uphold.cli.speaking import report_error

    try:
        report_error(error, as_json=as_json)
    except OSError:
        _discard_output()
    return error.exit_code


def _denied(error: PermissionError) -> UpholdError:
    return UpholdError(
        f"cannot use {error.filename}: {error.strerror}.",
        code="UPH_HOME_DENIED",
        remedy="Run this as the user who owns the home, or choose another with --home.",
        exit_code=EXIT_NOT_PERMITTED,
    )


def _unwritten(error: OSError) -> UpholdError:
    _discard_output()
    return UpholdError(
        f"cannot write the answer: {error.strerror}.",
        code="UPH_OUTPUT_LOST",
        remedy="What was asked for may have been done; `uphold status` shows how things stand.",
    )


def _fill_closed_streams() -> None:
    """Give closed descriptors a meaning: cron and daemons start programs without them."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _let_any_character_out() -> None:
    """Escape what the encoding of a terminal or pipe lacks; an answer must not fail by that."""
    out = sys.stdout
    if out.errors == "strict" or (out.errors == "surrogateescape" and out.encoding != "utf-8"):
        out.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _unexpected(error: Exception, args: argparse.Namespace | None) -> UpholdError:
    """Turn a bug into an error with a place to read more."""
    from uphold.cli.crashes import record_crash

    where = record_crash(error, args)
    told = f"Details are in {where}" if where else "Set UPHOLD_TRACEBACK=1 to see where"
    return UpholdError(
        f"something went wrong inside uphold: {type(error).__name__}: {error}",
        code="UPH_INTERNAL",
        remedy=f"{told}; please report it. Nothing was changed unless said above.",
        exit_code=EXIT_FAILED,
    )


def _discard_output() -> None:
    """Let the interpreter end quietly: it would try to flush into the closed pipe."""
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - pathlib costs 8 ms
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
