"""Writing a file for the user, who may have one there already."""

from __future__ import annotations

import os

from uphold.errors import EXIT_FAILED, EXIT_NOT_PERMITTED, HostFailure, NotPermitted


def write_new(path: str, text: str, *, replace: bool) -> None:
    """Write a file; one that is there is replaced only if that was asked for."""
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
        denied = isinstance(cause, PermissionError)
        raise HostFailure(
            f"cannot write {path}: {cause.strerror}.",
            remedy="Is the folder there, and may you write to it?",
            exit_code=EXIT_NOT_PERMITTED if denied else EXIT_FAILED,
        ) from cause
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
