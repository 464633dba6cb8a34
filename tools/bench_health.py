"""Measures what health costs: probes of many workers, and heartbeats by notify.

Run it on a quiet machine: `make bench` runs it after the other figures. CPU is that of the
supervisor alone; lag is how much longer than usual it takes to answer a question meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LATEST = 0.050
TICKS = os.sysconf("SC_CLK_TCK")
UPHOLD = [sys.executable, "-m", "uphold"]
BEATER = """
import json, os, socket, sys, time
speak = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
speak.connect(os.environ["NOTIFY_SOCKET"])
pause, count, due = float(sys.argv[1]), 0, time.monotonic()
while True:
    count += 1
    speak.send(b"UPHOLD_BEAT=" + json.dumps({"status": "running", "progress": count}).encode())
    due += pause
    time.sleep(max(0.0, due - time.monotonic()))
"""


def main() -> int:
    """Measure and print; the verdict stands beside each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1000, 2000])
    parser.add_argument("--seconds", type=float, default=30.0)
    args = parser.parse_args()
    print(f"{'what':46}{'N':>6}{'CPU of a core':>15}{'lag p99':>10}  target", flush=True)
    with served() as port:
        for way, target in (("tcp", f"{port}"), ("http", f'"http://127.0.0.1:{port}/"')):
            for size in args.sizes:
                terms = f'command = "sleep 100000"\nlive = {{ {way} = {target}, every = "10s" }}\n'
                figures = measured(f"[workers.w]\n{terms}", size, args.seconds)
                row(f"{way} probe every 10 s", size, figures, 0.15)
    beats = (
        f"[workers.w]\ncommand = ['{sys.executable}', '-I', '-S', 'beater.py', '0.1']\n"
        "heartbeat = { stale_after = '60s' }\n"
    )
    row("1,000 heartbeats/s by notify", 100, measured(beats, 100, args.seconds), 0.20)
    return 0


def row(what: str, size: int, figures: tuple[float, float], most: float) -> None:
    """Print one line."""
    (share, lag), latest = figures, LATEST
    judged = size <= 1000  # beyond, only growth is looked at
    reached = "reached" if share <= most and lag <= latest else "MISSED"
    target = f"≤ {most:.0%}, {latest * 1000:.0f} ms: {reached}" if judged else ""
    print(f"{what:46}{size:>6}{share:>14.1%}{lag * 1000:>8.1f} ms  {target}", flush=True)


def measured(terms: str, size: int, seconds: float) -> tuple[float, float]:
    """Supervise so many workers for so long: CPU as a part of a core, and the p99 of the lag."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "beater.py").write_text(BEATER, encoding="utf-8")
        names = "".join(terms.replace("[workers.w]", f"[workers.w{n}]") for n in range(size))
        Path(folder, "uphold.toml").write_text(names, encoding="utf-8")
        subprocess.run(
            [*UPHOLD, "start", "--timeout", "120"],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        try:
            home = Path(folder, ".uphold")
            pid = json.loads(Path(home, "lock").read_text(encoding="utf-8"))["pid"]
            time.sleep(12.0)
            before, began = cpu(pid), time.monotonic()
            delays = list(asked(home, began + seconds))
            share = (cpu(pid) - before) / (time.monotonic() - began)
        finally:
            subprocess.run([*UPHOLD, "stop"], cwd=folder, check=False, stdout=subprocess.DEVNULL)
    delays.sort()
    return share, delays[int(len(delays) * 0.99)] - statistics.median(delays)


def asked(home: Path, until: float) -> Iterator[float]:
    """Ask a small question ten times a second; give how long each answer took."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(home / "control.sock"))
    with connection, connection.makefile("rwb") as stream:
        while time.monotonic() < until:
            began = time.monotonic()
            stream.write(b'{"id": 1, "method": "ping", "params": {}}\n')
            stream.flush()
            stream.readline()
            yield time.monotonic() - began
            time.sleep(0.1)


def cpu(pid: int) -> float:
    """Give the processor time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def served() -> Iterator[int]:
    """Serve whoever connects, on a free port."""
    server = socket.create_server(("127.0.0.1", 0), backlog=4096)

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client:
                client.settimeout(1.0)
                try:
                    if client.recv(4096):
                        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                except OSError:
                    continue

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield server.getsockname()[1]
    finally:
        server.close()


if __name__ == "__main__":
    sys.exit(main())
