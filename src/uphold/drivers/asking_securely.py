"""Asks one https URL, as a program of its own: exits with 0 for a status from 200 to 399."""

from __future__ import annotations

import sys
from urllib.parse import urlsplit


def main(url: str) -> int:
    """Ask once; certificates are not checked, as those of a machine's own services rarely can."""
    import http.client  # noqa: PLC0415 - where TLS is hidden, this may still be imported
    import ssl  # noqa: PLC0415

    parts = urlsplit(url)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=context)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection.request("GET", path, headers={"User-Agent": "uphold"})
    return 0 if 200 <= connection.getresponse().status < 400 else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except OSError as cause:
        sys.exit(str(cause))
