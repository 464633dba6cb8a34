"""The sections about everything but workers: journal, store, inbox, deploy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uphold.config import keys
from uphold.config.places import Place
from uphold.config.stores import anchored
from uphold.core.names import nearest
from uphold.core.specs import DeploySpec, Gate, InboxSpec, JournalSpec, Layout, StoreSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from uphold.config.places import Report, Where
    from uphold.config.secrecy import Secrets
    from uphold.config.shapes import Table
    from uphold.core.specs import WorkerSpec


class Sections:
    """Reads them from the tables of one file; everything wrong goes to the report."""

    def __init__(
        self,
        report: Report,
        root: Where,
        secrets: Secrets,
        path: Callable[[str], str],
        folder: str,
    ) -> None:
        self._report = report
        self._root = root
        self._secrets = secrets
        self._path = path
        """Makes a path absolute, from the folder of the file."""
        self._folder = folder

    def resolve(self, tables: dict[str, Any], workers: Sequence[WorkerSpec]) -> dict[str, Any]:
        """Give what `Settings` holds beside supervisor and workers."""
        return {
            "journal": JournalSpec(**self._read(keys.JOURNAL, tables, "journal")),
            "store": self._store(tables),
            "inbox": self._inbox(tables),
            "deploy": self._deploy(tables, workers),
        }

    def _store(self, tables: dict[str, Any]) -> StoreSpec | None:
        found = self._needing("url", keys.STORE, tables, "store")
        if found is None:
            return None
        self._secrets.in_address(found["url"])
        return StoreSpec(**{**found, "url": anchored(found["url"], self._folder)})

    def _inbox(self, tables: dict[str, Any]) -> InboxSpec | None:
        found = self._needing("share", keys.INBOX, tables, "inbox")
        if found is None:
            return None
        for sender in found.get("senders") or ():
            self._secrets.named("key", sender.key)
        layout = Layout(**found.pop("layout", {}))
        return InboxSpec(**{**found, "share": self._path(found["share"]), "layout": layout})

    def _deploy(self, tables: dict[str, Any], workers: Sequence[WorkerSpec]) -> DeploySpec | None:
        if "deploy" not in tables:
            return None
        found = self._read(keys.DEPLOY, tables, "deploy")
        self._check_workers(found.get("workers", ()), [spec.name for spec in workers])
        python = found.get("python", "")
        if "/" in python:
            found["python"] = self._path(python)
        gate = Gate(**found.pop("gate", {}))
        return DeploySpec(**{**found, "repo": self._path(found.get("repo", ".")), "gate": gate})

    def _check_workers(self, names: Sequence[str], known: list[str]) -> None:
        for number, name in enumerate(names):
            if name not in known:
                close = nearest(name, known)
                hint = f"; did you mean '{close}'?" if close else ""
                self._report.wrong(
                    (*self._root, "deploy", "workers", number),
                    f"[deploy].workers names '{name}', but no worker is called so{hint}",
                )

    def _needing(
        self, key: str, table: Table, tables: dict[str, Any], section: str
    ) -> dict[str, Any] | None:
        """Read a section that means nothing without one key; None if that is missing or wrong."""
        if section not in tables:
            return None
        found = self._read(table, tables, section)
        if key in found:
            return found
        given = tables[section]
        if given is None or (isinstance(given, dict) and key not in given):
            self._place(section).wrong(f"needs a {key}; without one leave the section out")
        return None

    def _read(self, table: Table, tables: dict[str, Any], section: str) -> dict[str, Any]:
        found = table.read(tables.get(section), self._place(section))
        return found if isinstance(found, dict) else {}

    def _place(self, section: str) -> Place:
        return Place(self._report, (*self._root, section), f"[{section}]")
