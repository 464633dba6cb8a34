"""The configuration as JSON Schema (2020-12), for editors and other programs."""

from __future__ import annotations

from typing import Any

from uphold.config import keys


def json_schema() -> dict[str, Any]:
    """Describe a whole file. What only holds between keys (cycles, shell) is not said here."""
    worker = {**keys.WORKER.schema(), "description": "One worker."}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "uphold configuration",
        "type": "object",
        "additionalProperties": False,
        "minProperties": 1,
        "properties": {
            "supervisor": {
                **keys.SUPERVISOR.schema(),
                "description": "The supervisor itself.",
            },
            "journal": {**keys.JOURNAL.schema(), "description": "How much of the past is kept."},
            "store": {**keys.STORE.schema(), "description": "The database that gets a copy."},
            "inbox": {**keys.INBOX.schema(), "description": "A shared folder that orders come by."},
            "deploy": {**keys.DEPLOY.schema(), "description": "The checkout that is updated."},
            "defaults": {
                **worker,
                "description": "Terms that every worker has unless it says otherwise.",
            },
            "workers": {
                "type": "object",
                "description": "What to keep running, by name.",
                "propertyNames": {"pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"},
                "additionalProperties": worker,
            },
        },
        "$defs": {
            "variable": {
                "type": "string",
                "pattern": "\\$\\{[A-Za-z_][A-Za-z0-9_]*(:[^{}]*)?\\}",
                "description": "A value that comes from an environment variable.",
            }
        },
    }
