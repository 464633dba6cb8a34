"""A web server that says one line; ends at once and in order when it is asked to."""

from __future__ import annotations

import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Greeter(BaseHTTPRequestHandler):
    """Answers every request with how many came before it."""

    served = 0

    def do_GET(self) -> None:
        """Answer."""
        Greeter.served += 1
        body = f"You are visitor number {Greeter.served}.\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class ShopServer(ThreadingHTTPServer):
    """Comes back on the same port at once after a restart."""

    allow_reuse_address = True
    daemon_threads = True


def main() -> None:
    """Serve until told to end."""
    port = int(os.environ.get("SHOP_PORT", "8765"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with ShopServer(("127.0.0.1", port), Greeter) as server:
        print(f"open on http://127.0.0.1:{port}/", flush=True)
        try:
            server.serve_forever()
        finally:
            print(f"closed after {Greeter.served} visitors", flush=True)


if __name__ == "__main__":
    main()
