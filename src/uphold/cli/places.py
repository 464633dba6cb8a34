"""Which configuration file and which home a command is about.

Plain strings and `os.path`: pathlib would cost every command 8 ms.
"""
# ruff: noqa: PTH100, PTH109, PTH112, PTH113, PTH118, PTH120

from __future__ import annotations

import os

from uphold.config.finding import CONFIG_NAMES, HOME_NAME, declared_home, find_file
from uphold.errors import EXIT_CONFIG, UpholdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


class Place:
    """The home a command is about, and the configuration file if one was found."""

    __slots__ = ("config", "home")

    def __init__(self, home: str, config: str | None) -> None:
        self.home = home
        self.config = config


def locate(args: argparse.Namespace) -> Place:
    """Find the home: as told, else as the configuration says, else beside it."""
    here = _current_folder()
    config = os.path.abspath(args.config) if args.config else find_file(here, os.environ)
    told = args.home or os.environ.get("UPHOLD_HOME")
    if told:
        return Place(os.path.realpath(told), config)
    if config is not None:
        home = declared_home(config, os.environ) or HOME_NAME
        return Place(os.path.realpath(os.path.join(os.path.dirname(config), home)), config)
    left = _home_without_config(here)
    if left is None:
        raise no_config(here)
    return Place(left, None)


def require_config(place: Place) -> str:
    """Tell the configuration file, or say that there is none."""
    if place.config is None:
        raise no_config(_current_folder())
    if not os.path.isfile(place.config):
        raise UpholdError(
            f"there is no configuration file {place.config}.",
            code="UPH_CONFIG_MISSING",
            remedy="Check the path, or write a starter with `uphold init`.",
            exit_code=EXIT_CONFIG,
        )
    return place.config


def no_config(here: str) -> UpholdError:
    """Make the error for a folder in which uphold knows nothing."""
    return UpholdError(
        f"found no {CONFIG_NAMES[0]} in {here} or above it.",
        code="UPH_CONFIG_MISSING",
        remedy="Write a starter with `uphold init`, or name a file with -c or a home with --home.",
        exit_code=EXIT_CONFIG,
    )


def _home_without_config(here: str) -> str | None:
    """Find a home whose file is gone: its supervisor may still run and must stay within reach."""
    folder = here
    while True:
        if os.path.isdir(f"{folder}/{HOME_NAME}"):
            return os.path.realpath(f"{folder}/{HOME_NAME}")
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _current_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        # The folder was removed under our feet; with --home everything still works.
        return "/"
