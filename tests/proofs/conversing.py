"""The control socket spoken by hand, so that one side may die in the middle of a word."""

from __future__ import annotations

import json
import socket
from contextlib import suppress

from proofs.witnessing import PATIENCE


class Line:
    """A conversation with the supervisor, in which nobody needs to wait for an answer."""

    def __init__(self, home):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(PATIENCE)
        self.asked = []
        self._heard = b""
        with suppress(OSError):
            self._socket.connect(f"{home}/control.sock")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def say(self, method, **params):
        """Order something."""
        params = {"author": "proof", "wait": False, **params}
        self.asked.append(params)
        request = {"id": len(self.asked), "method": method, "params": params}
        with suppress(OSError):
            self._socket.sendall(json.dumps(request).encode() + b"\n")

    def ask(self, method, **params):
        """Order something and wait for the answer."""
        self.say(method, **params)
        while b"\n" not in self._heard:
            try:
                chunk = self._socket.recv(1 << 20)
            except OSError as cause:
                raise AssertionError(f"no answer to {method}: {cause}") from None
            assert chunk, f"no answer to {method}"
            self._heard += chunk
        line, _, self._heard = self._heard.partition(b"\n")
        answer = json.loads(line)
        assert "result" in answer, f"{method} {params}: {answer}"
        return answer["result"]

    def answers(self):
        """Give what was answered, by what was asked, once the other side is dead."""
        with suppress(OSError):
            while chunk := self._socket.recv(1 << 20):
                self._heard += chunk
        for line in self._heard.splitlines(keepends=True):
            if line.endswith(b"\n"):
                answer = json.loads(line)
                yield self.asked[answer["id"] - 1], answer
