"""What each verb's `--help` shows of its use. Only help and tests read it."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "init": ("uphold init", "uphold init --from Procfile"),
    "import": ("uphold import supervisord.conf",),
    "export": ("uphold export systemd > uphold.service",),
    "check": ("uphold check", "uphold check --schema > uphold.schema.json"),
    "doctor": ("uphold doctor",),
    "plan": ("uphold plan", "uphold plan --exit-code --quiet || echo 'not as the file says'"),
    "run": ("uphold run", "uphold run --table"),
    "once": ("uphold once", "uphold once -c /srv/app/uphold.toml --quiet"),
    "start": ("uphold start", "uphold start web mailer --reason 'provider is back'"),
    "stop": ("uphold stop", "uphold stop mailer", "uphold stop --keep-workers"),
    "restart": ("uphold restart web", "uphold restart --keep-workers"),
    "reload": ("uphold reload --label 'new port'",),
    "status": ("uphold status", "uphold status web --json", "uphold status --watch"),
    "show": ("uphold show web",),
    "why": ("uphold why web",),
    "logs": (
        "uphold logs web -f",
        "uphold logs web --since 10m --grep 'error|warning'",
        "uphold logs",
    ),
    "pause": ("uphold pause mailer --reason 'provider is down'", "uphold pause"),
    "resume": ("uphold resume mailer", "uphold resume"),
    "enable": ("uphold enable mailer",),
    "disable": ("uphold disable mailer",),
    "quarantine": ("uphold quarantine mailer --reason 'unknown build'",),
    "approve": ("uphold approve mailer",),
    "scale": ("uphold scale web=3",),
    "signal": ("uphold signal web HUP",),
    "beat": ("uphold beat gpu-agent --status busy",),
    "reset": ("uphold reset web",),
    "flag": ("uphold flag list", "uphold flag create restart_watcher --worker-id OrionMX"),
    "update": ("uphold update", "uphold update --deps"),
    "rollback": ("uphold rollback --commits 2",),
    "diagnose": ("uphold diagnose web --open",),
    "db": ("uphold db status", "uphold db migrate --dry-run"),
    "verify-db": ("uphold verify-db", "uphold verify-db --json"),
    "completion": ("source <(uphold completion bash)", "uphold completion fish | source"),
    "version": ("uphold version --json",),
}


def shown(verb: str) -> str | None:
    """Write the examples of a verb as the last lines of its help."""
    lines = EXAMPLES.get(verb)
    return None if lines is None else "examples:\n" + "\n".join(f"  {line}" for line in lines)
