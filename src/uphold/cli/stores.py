"""The shared database a command is about."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from uphold.cli.places import require_config

if TYPE_CHECKING:
    from uphold.cli.places import Place
    from uphold.core.specs import Settings, StoreSpec


def configured_store(place: Place) -> tuple[Settings, StoreSpec]:
    """Read the configuration; an error with exit code 6 if it has no [store]."""
    from uphold.config.loading import load
    from uphold.recorder.verifying import not_configured

    settings = load(require_config(place), environ=os.environ)
    if settings.store is None:
        raise not_configured()
    return settings, settings.store
