"""A chat server that lives in the test."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

TOKEN = "canary-token-4711"


class ChatServer:
    """Keeps what people wrote and what they were answered; may be broken for a while."""

    def __init__(self) -> None:
        self.written: list[dict] = []
        self.answers: list[dict] = []
        self.broken = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                after = int(parse_qs(urlsplit(self.path).query)["after"][0])
                self._reply({"updates": [each for each in outer.written if each["id"] > after]})

            def do_POST(self):
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self._reply({"ok": True}):
                    outer.answers.append(message)

            def _reply(self, body: dict) -> bool:
                allowed = self.headers["Authorization"] == f"Bearer {TOKEN}"
                code = 503 if outer.broken else 200 if allowed else 401
                self.send_response(code)
                self.end_headers()
                self.wfile.write(json.dumps(body if code == 200 else {}).encode())
                return code == 200

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        self.written.append({"id": len(self.written) + 1, "chat": "ann", "text": text})

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
