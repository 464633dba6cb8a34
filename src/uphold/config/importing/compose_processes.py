"""One process of process-compose on its way to one worker, or to several that differ by number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from uphold.config.importing.compose_probes import probe_of
from uphold.config.importing.compose_settings import read_plain
from uphold.config.importing.compose_texts import REPLICA, Texts, as_text
from uphold.config.importing.reports import (
    Book,
    Draft,
    NotImportable,
    Outcome,
    Setting,
    Source,
    Terms,
    approximated,
    lost,
    translated,
)
from uphold.config.importing.wording import needs_shell, written_all

_CONDITIONS: Final = {
    "process_started": ("started", ""),
    "process_healthy": ("healthy", ""),
    "process_log_ready": ("healthy", ""),
    "process_completed_successfully": ("completed", ""),
    "process_completed": ("completed", "it must have ended well; there any end will do"),
}
_MOST_REPLICAS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What the processes of one file share."""

    source: Source
    book: Book
    texts: Texts
    shell: tuple[str, str]
    processes: Mapping[str, Any]
    called: Mapping[str, tuple[str, ...]]
    """The workers that each process becomes."""
    at: Callable[..., str]
    """Names the line of a part of the processes."""


def replicas_apart(given: Any) -> int:
    """Tell how many workers a process becomes: several, if its replicas differ by number."""
    if not isinstance(given, dict) or REPLICA not in str(given):
        return 1
    many = given.get("replicas", 1)
    if isinstance(many, bool) or not isinstance(many, int):
        return 1
    return max(1, min(many, _MOST_REPLICAS))


class Process:
    """One process, read."""

    def __init__(self, original: str, given: Any, project: Project) -> None:
        if not isinstance(given, dict):
            raise NotImportable(project.at(original), f"the process '{original}' must be a table")
        if not given.get("command") and not given.get("entrypoint"):
            raise NotImportable(project.at(original), f"the process '{original}' has no command")
        self._original = original
        self._given = given
        self._project = project
        own = given.get("vars")
        self._texts = replace(
            project.texts,
            templates=given.get("is_template_disabled") is not True,
            vars={**project.texts.vars, **(own if isinstance(own, dict) else {})},
        )

    def drafts(self) -> Iterator[Draft]:
        """Give the workers it becomes."""
        names = self._project.called[self._original]
        self._judge_names(names)
        for number, name in enumerate(names):
            texts = replace(self._texts, vars={**self._texts.vars, REPLICA: number})
            terms: Terms = {}
            for setting in self._settings():
                outcome = self._judged(setting, terms, texts)
                if number == 0:
                    told = self._with_templates(setting, outcome, texts)
                    self._project.book.judge(setting, told, names[0])
            yield Draft(name, written_all(terms))

    def _settings(self) -> Iterator[Setting]:
        """Give the settings, those of the small tables one by one."""
        for key, value in self._given.items():
            if key in ("availability", "shutdown") and isinstance(value, dict):
                for inner, item in value.items():
                    at = self._project.at(self._original, key, inner)
                    yield Setting(at, self._original, f"{key}.{inner}", item)
            else:
                yield Setting(self._project.at(self._original, key), self._original, key, value)

    def _judged(self, setting: Setting, terms: Terms, texts: Texts) -> Outcome:
        if setting.name in ("command", "entrypoint"):
            return self._command(setting, terms, texts)
        if setting.name == "replicas" and len(self._project.called[self._original]) > 1:
            return translated("a worker each, as they differ")
        if setting.name == "depends_on":
            return self._depends_on(setting, terms)
        if setting.name in ("readiness_probe", "liveness_probe"):
            key = "ready" if setting.name == "readiness_probe" else "live"
            if key in terms:
                return lost("the line of ready_log_line is waited for; a worker has one of them")
            terms[key], outcome = probe_of(setting, texts, key)
            return outcome
        return read_plain(setting, terms, texts, self._project.source)

    def _command(self, setting: Setting, terms: Terms, texts: Texts) -> Outcome:
        if setting.name == "entrypoint":
            if self._given.get("command"):
                return translated("nothing: the command counts, as there")
            if not isinstance(setting.value, list) or not as_text(setting.value[0]):
                raise NotImportable(setting.at, "entrypoint must be a list of words")
            terms["command"] = [texts.read(word) for word in setting.value]
            return translated("command")
        line = texts.read(setting.value)
        if not needs_shell(line):
            terms["command"] = line.strip()
            return translated("command; it needs no shell")
        terms["command"] = [*self._project.shell, line]
        return translated(f"command, by {' '.join(self._project.shell)} as there")

    def _depends_on(self, setting: Setting, terms: Terms) -> Outcome:
        given = setting.value
        if isinstance(given, list):
            given = {as_text(name): {} for name in given}
        if not isinstance(given, dict):
            raise NotImportable(setting.at, "depends_on must be a table of processes")
        needs: dict[str, str] = {}
        remarks: list[str] = []
        for other, conditions in given.items():
            if other not in self._project.called:
                remarks.append(f"{other} is left out, as no process is called so")
                continue
            if other == self._original:
                raise NotImportable(setting.at, f"'{other}' depends on itself")
            need, remark = self._need(other, conditions)
            needs |= dict.fromkeys(self._project.called[other], need)
            remarks += [f"{other}: {remark}"] if remark else []
        terms["depends_on"] = needs
        if remarks:
            return approximated(f"depends_on; {'; '.join(remarks)}")
        return translated("depends_on")

    def _need(self, other: str, conditions: Any) -> tuple[str, str]:
        condition = conditions.get("condition") if isinstance(conditions, dict) else None
        need, remark = _CONDITIONS.get(
            as_text(condition or "process_started"),
            ("started", f"the condition {as_text(condition)} is not known; started it is"),
        )
        probed = self._project.processes.get(other)
        probed = probed if isinstance(probed, dict) else {}
        if need == "healthy" and not {"readiness_probe", "ready_log_line"} & probed.keys():
            return "started", "it has no readiness_probe, so that it has started must do"
        return need, remark

    def _with_templates(self, setting: Setting, outcome: Outcome, texts: Texts) -> Outcome:
        if setting.name not in ("vars", "depends_on"):
            unknown = texts.unknown(str(setting.value))
            if unknown:
                return lost(f"{unknown[0]} cannot be put in and stands there as it is; edit it")
        return outcome

    def _judge_names(self, names: tuple[str, ...]) -> None:
        if len(names) == 1 and names[0] == self._original:
            return
        setting = Setting(self._project.at(self._original), "", self._original, None)
        if len(names) > 1:
            outcome = approximated(f"a worker each, as they differ: {', '.join(names)}")
        else:
            outcome = approximated(f"the worker is called {names[0]}")
        self._project.book.judge(setting, outcome, names[0])
