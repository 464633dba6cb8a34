"""The live table, on a real terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios


def on_a_terminal(
    *words: str, cwd: str, columns: int, lines: int, **environ: str
) -> tuple[int, str]:
    """Run a command on a terminal of this size and read all it paints."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    process = subprocess.Popen(
        [sys.executable, "-m", "uphold", *words],
        cwd=cwd,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**kept, "TERM": "xterm", **environ},
    )
    os.close(slave)
    painted = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:
            break
        if not chunk:
            break
        painted += chunk
    os.close(master)
    return process.wait(), painted.decode()


def test_the_table_is_repainted_in_place_and_fits(supervisor, document, row):
    rows = [
        row(f"worker{i}", why="a reason that is far too long for this screen") for i in range(30)
    ]
    supervisor.answers["status"] = document(*rows)
    supervisor.answers["subscribe"] = {"seq": 1}
    supervisor.news = [{"seq": 2, "type": "worker.exited"}]
    code, painted = on_a_terminal(
        "status", "--watch", cwd=str(supervisor.home.parent), columns=70, lines=12
    )
    assert code == 0
    assert painted.startswith("\x1b[?25l\x1b[H")
    assert painted.endswith("\x1b[?25h")
    picture = painted.split("\x1b[H")[1].replace("\x1b[K", "").replace("\r", "")
    shown = picture.split("\x1b[J")[0].splitlines()
    assert len(shown) <= 12
    assert "NAME" in shown[0]
    assert shown[-3:-1] == ["...", "30 workers: 30 running"]
    assert shown[-1].startswith("supervisor orion (pid 4242): active, healthy, up ")
    assert "a reason" in shown[1]
    assert shown[1].endswith("…")


def test_a_low_and_narrow_terminal_keeps_the_header_the_worst_and_the_whole_sum(
    supervisor, document, row
):
    rows = [row(f"worker{i}", why="fine") for i in range(30)]
    rows.append(row("sick", state="failed", health="unhealthy", why="gave up after 10 runs"))
    fault = {"code": "UPH_X", "message": "something of the supervisor itself went wrong"}
    supervisor.answers["status"] = document(*rows, health="degraded", last_error=fault)
    supervisor.answers["subscribe"] = {"seq": 1}
    supervisor.news = [{"seq": 2, "type": "worker.exited"}]
    code, painted = on_a_terminal(
        "status", "--watch", cwd=str(supervisor.home.parent), columns=40, lines=14
    )
    assert code == 150
    picture = painted.split("\x1b[H")[1].split("\x1b[J")[0]
    shown = re.sub(r"\x1b\[[0-9]*[mK]|\r", "", picture).splitlines()
    assert len(shown) < 14
    assert all(len(line) <= 40 for line in shown)
    assert shown[0].startswith("NAME")
    assert shown[1].startswith("sick      failed   unhealthy  gave")
    told = " ".join(line.strip() for line in shown[shown.index("...") + 1 :])
    assert told.startswith("31 workers: 1 failed, 30 running supervisor orion (pid 4242):")
    assert "active, degraded" in told
    assert told.endswith("last error: UPH_X: something of the supervisor itself went wrong")


def test_colour_can_be_declined(supervisor, document, row):
    supervisor.answers["status"] = document(row())
    place = {"cwd": str(supervisor.home.parent), "columns": 100, "lines": 24}
    _, coloured = on_a_terminal("status", **place)
    assert "\x1b[32mrunning" in coloured
    for environ in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        _, plain = on_a_terminal("status", **place, **environ)
        assert "\x1b" not in plain
