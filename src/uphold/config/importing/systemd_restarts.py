"""When systemd starts a unit again: four settings that only make sense together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uphold.config.importing.reports import (
    NotImportable,
    Outcome,
    Setting,
    Terms,
    approximated,
    lost,
    translated,
)
from uphold.config.importing.systemd_settings import RESTARTING, span
from uphold.config.importing.wording import seconds, whole

_POLICIES: Final = {
    "no": ("no", ""),
    "always": ("always", ""),
    "on-failure": ("on-failure", ""),
    "on-success": ("always", "it is started again after failures, too"),
    "on-abnormal": ("on-failure", "exit codes other than 0 count, too"),
    "on-abort": ("on-failure", "exit codes other than 0 count, too"),
    "on-watchdog": ("on-failure", "every failure counts, not only a missed watchdog"),
}
_LONGEST: Final = 86400.0


def read_restarts(counting: list[Setting], terms: Terms) -> Iterator[tuple[Setting, Outcome]]:
    """Write the restart rule and judge its settings."""
    found = {setting.name: setting for setting in counting if setting.name in RESTARTING}
    policy, remark = _policy(found.get("Restart"))
    terms["restart"] = policy
    wait = _span(found.get("RestartSec"), 0.1)
    longest = max(_span(found.get("RestartMaxDelaySec"), wait), wait)
    window = _span(found.get("StartLimitIntervalSec", found.get("StartLimitInterval")), 10.0)
    burst = _whole(found.get("StartLimitBurst"), 5)
    if policy != "no":
        _write(terms, wait, longest)
        # Restarts that come slower than the limit counts never reach it.
        limited = window > 0 and burst > 0 and burst * wait < window
        terms["max_restarts"] = burst if limited else "unlimited"
        if limited:
            terms["stable_after"] = seconds(window)
    for name, setting in found.items():
        yield setting, _judged(name, policy, remark)


def _write(terms: Terms, wait: float, longest: float) -> None:
    first, most = seconds(wait), seconds(longest)
    terms["backoff"] = {"first": first, "base": first, "max": most, "jitter": 0}


def _judged(name: str, policy: str, remark: str) -> Outcome:
    if name == "Restart":
        return approximated(f"restart; {remark}") if remark else translated("restart")
    if policy == "no":
        return translated("nothing to do: it is not restarted")
    if name == "RestartSec":
        return translated("backoff")
    if name == "RestartMaxDelaySec":
        return approximated("backoff.max; the waits double until then")
    if name == "RestartSteps":
        return lost("the waits double until backoff.max")
    return approximated(
        "max_restarts and stable_after: failures in a row that did not last, not starts in a time"
    )


def _policy(setting: Setting | None) -> tuple[str, str]:
    if setting is None:
        return "no", ""
    if setting.value not in _POLICIES:
        raise NotImportable(setting.at, f"Restart must be one of {', '.join(_POLICIES)}")
    return _POLICIES[setting.value]


def _span(setting: Setting | None, default: float) -> float:
    if setting is None:
        return default
    return min(span(setting, setting.value), _LONGEST)


def _whole(setting: Setting | None, default: int) -> int:
    if setting is None:
        return default
    number = whole(setting.value)
    if number is None or not 0 <= number <= 10**6:
        raise NotImportable(setting.at, f"{setting.name} must be a whole number")
    return number
