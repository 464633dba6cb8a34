"""Where things lie. Every worker is told the folder by AGENT_STATE.

inbox/           requests: {"agent", "text", "channel", "chat"}
agents/NAME/     jobs for one agent
outbox/CHANNEL/  answers: {"agent", "text", "chat"}
"""

from __future__ import annotations

import os
from pathlib import Path

from agent_runtime.queues import FileQueue


def state() -> Path:
    """Give the folder that all workers share."""
    return Path(os.environ.get("AGENT_STATE", "state"))


def agents() -> list[str]:
    """Name the agents there are."""
    return os.environ.get("AGENTS", "writer reader").split()


def me() -> str:
    """Name this worker; several of one kind have different names."""
    return os.environ.get("UPHOLD_SLOT", "me")


def inbox() -> FileQueue:
    """Open the queue of requests."""
    return FileQueue(state() / "inbox", me())


def agent_queue(name: str) -> FileQueue:
    """Open the queue of one agent."""
    return FileQueue(state() / "agents" / name, me())


def outbox(channel: str) -> FileQueue:
    """Open the queue of answers for one channel."""
    return FileQueue(state() / "outbox" / channel, me())
