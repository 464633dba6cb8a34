"""The chat channel: brings what people write to the inbox, and answers back to them.

Talks to a chat server over HTTP, which blocks; so `run` is a plain function, and uphold lets it
run in a thread.

    GET  /updates?after=N   {"updates": [{"id": 1, "chat": "ann", "text": "writer: hello"}]}
    POST /messages          {"chat": "ann", "text": "…"}

Both with `Authorization: Bearer TOKEN`.
"""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

import uphold
from agent_runtime import places

LOOK_EVERY = 1.0


class ChatChannel(uphold.Worker):
    """One chat server; exists only with a token."""

    def setup(self) -> None:
        """Read the settings; a missing one is named."""
        self.url = os.environ["CHAT_URL"].rstrip("/")
        self.token = os.environ["CHAT_TOKEN"]
        self.every = float(os.environ.get("CHAT_EVERY", LOOK_EVERY))
        self.brought = self.sent = 0
        self.trouble: str | None = None
        self.inbox = places.inbox()
        self.outbox = places.outbox("chat")
        self.outbox.recover()
        self.seen = places.state() / "chat-seen"

    def run(self, stopping: uphold.BlockingStopping) -> None:
        """Bring and send until asked to stop; a server that is away is trouble, not an end."""
        while not stopping.wait(self.every):
            try:
                self._bring()
                self._send()
            except (OSError, ValueError, KeyError) as cause:
                self._note(f"the chat server at {self.url} does not answer well: {cause!r}")
            else:
                self._note(None)

    def health(self) -> uphold.Health:
        """Say what is wrong with the server, as long as it is."""
        summary = f"{self.brought} brought, {self.sent} answered"
        if self.trouble:
            return uphold.Health.degraded(self.trouble, summary=summary)
        return uphold.Health("idle", summary, self.brought + self.sent)

    def _bring(self) -> None:
        after = int(self.seen.read_text()) if self.seen.exists() else 0
        for update in self._ask(f"/updates?after={after}")["updates"]:
            agent, colon, text = str(update["text"]).partition(":")
            request = {"channel": "chat", "chat": update["chat"], "text": str(update["text"])}
            if colon and agent.strip() in places.agents():
                request |= {"agent": agent.strip(), "text": text.strip()}
            # Named by its number: brought twice, it is still one request.
            self.inbox.put(request, f"chat-{int(update['id']):012d}")
            self._remember(int(update["id"]))
            self.brought += 1

    def _send(self) -> None:
        while (job := self.outbox.claim()) is not None:
            message = {"chat": job.content.get("chat"), "text": job.content.get("text")}
            try:
                self._ask("/messages", message)
            except OSError:
                self.outbox.put_back(job)
                raise
            self.outbox.finish(job)
            self.sent += 1

    def _ask(self, path: str, message: dict[str, Any] | None = None) -> Any:
        request = urllib.request.Request(  # noqa: S310 - the address is ours
            self.url + path,
            data=None if message is None else json.dumps(message).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
            return json.loads(answer.read() or b"{}")

    def _remember(self, number: int) -> None:
        temp = self.seen.with_name(".chat-seen")
        temp.write_text(str(number))
        temp.replace(self.seen)

    def _note(self, trouble: str | None) -> None:
        """Tell of trouble when it comes and when it is over, and not in between."""
        if bool(trouble) != bool(self.trouble):
            print(trouble or "the chat server answers again")
            uphold.beat(status="degraded" if trouble else "running", error=trouble)
        self.trouble = trouble
