"""T13: database servers and recorders killed in the middle of copying, again and again.

A real supervisor with workers that crash, people who give orders, and a real server. Afterwards
the copy is compared with the journal row by row: everything once, in order, nothing changed.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from contextlib import closing, suppress

from journeys.site import Site, eventually
from proofs.proving import Verdict, main
from servers import MariaDB, PostgreSQL, running

PATIENCE = 240.0

CONFIG = """
[supervisor]
name = "site"
heartbeat_every = "2s"
[store]
url = "{url}"
[workers.steady]
command = ["sleep", "1000"]
[workers.crashing]
command = ["sh", "-c", "sleep 0.2; exit 1"]
max_restarts = 100000
backoff = {{ base = "100ms", max = "100ms" }}
"""


class Outages:
    """One supervisor, one server, and what is done to the latter and to the recorder."""

    def __init__(self, site, server, url, rng):
        self.site = site
        self.server = server
        self.database = url.rpartition("/")[2]
        self.rng = rng
        self.kills = {"server": 0, "recorder": 0, "freeze": 0}

    def cycle(self):
        what = self.rng.choice(("server", "server", "recorder", "both", "freeze"))
        time.sleep(self.rng.uniform(0.0, 0.6))
        if what == "freeze":
            self.kills["freeze"] += 1
            with self.server.frozen():
                self.order()
            return
        if what in ("server", "both"):
            self.kills["server"] += 1
            self.server.kill()
        if what in ("recorder", "both"):
            self.kill_recorder()
        self.order()
        if self.server.process is None:
            self.server.start()

    def order(self):
        for verb in self.rng.sample(("restart", "stop", "start"), 2):
            self.site.ok(verb, "steady")

    def kill_recorder(self):
        rows = self.site.run("status", "--all", "--json").json["workers"]
        pid = next(row["pid"] for row in rows if row["slot"] == "@recorder")
        if pid:
            self.kills["recorder"] += 1
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def caught_up(self):
        store = self.site.status()["store"]
        return store["state"] == "caught_up" and store["pending"] == 0 and store

    def differences(self):
        return differences(self.site.home, self.server, self.database)


def differences(home, server, database):
    """Compare what the journal has with what the database has, in order."""
    for table, key, columns in (
        ("events_t", "seq", "seq, id, type, entity_id, payload"),
        ("audit_log_t", "rowid", "audit_id, actor, action, details_json, prev_hash, hash"),
        ("jobs_t", "job_id", "job_id, state, job_type, target_ref"),
    ):
        with closing(sqlite3.connect(home / "journal.db")) as journal:
            there = journal.execute(f"SELECT {columns} FROM {table} ORDER BY {key}").fetchall()
        order = "position" if table == "audit_log_t" else key
        copied = server.run(f"SELECT {columns} FROM {table} ORDER BY {order}", database)
        if [tuple(row) for row in copied] != there:
            missing = len(set(there) - {tuple(row) for row in copied})
            yield f"{table}: {len(there)} rows, {len(copied)} copied, {missing} missing"


def _cycles(kind, count, seed, folder):
    rng = random.Random(seed)
    with running(kind) as server:
        url = server.fresh()
        site = Site(folder)
        site.write(CONFIG.format(url=url))
        outages = Outages(site, server, url, rng)
        try:
            site.ok("start")
            eventually(outages.caught_up, PATIENCE, "the first copy")
            pid = site.pid
            for _ in range(count):
                outages.cycle()
            store = eventually(outages.caught_up, PATIENCE, "all copied")
            violations = []
            if site.pid != pid:
                violations.append(f"seed {seed}: the supervisor is another one")
            site.ok("stop")
            violations += [f"seed {seed}: {each}" for each in outages.differences()]
            if store["lost"] or store["set_aside"]:
                violations.append(f"seed {seed}: {store}")
        finally:
            site.close()
        rows = server.run("SELECT count(*) FROM events_t", outages.database)[0][0]
        figures = (f"{rows} events", f"{outages.kills}")
        return Verdict(count=count, violations=tuple(violations), figures=figures)


def mariadb(count, seed, folder):
    return _cycles(MariaDB, count, seed, folder)


def postgresql(count, seed, folder):
    return _cycles(PostgreSQL, count, seed, folder)


if __name__ == "__main__":
    main({"mariadb": mariadb, "postgresql": postgresql})
