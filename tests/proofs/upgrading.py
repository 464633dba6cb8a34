"""T22: one version of uphold hands over to the other and back, with live workers.

Two copies of the package, each with an interpreter of its own, share one home: the present
source, and an earlier commit where the history is at hand (else the present source under another
number). Workers must not notice; what one version has written the other reads, or it says in a
sentence why it will not.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

import uphold
from journeys.site import Site, eventually
from proofs.logging_lines import PATIENCE, WRITER, check, command_of, finish, pumps
from proofs.proving import Verdict, main

ROOT = Path(__file__).resolve().parent.parent.parent
EARLIER = "5b6f23d"
"""The commit that the present source must get along with."""
OTHER_NUMBER = "0.0.9"
SAME = ("pid", "restarts", "generation", "state", "admin")


class Version(NamedTuple):
    """A copy of the package and the interpreter that finds it."""

    name: str
    folder: Path
    python: Path


class House(Site):
    """A site whose commands may come from either version."""

    def __init__(self, folder, version):
        folder.mkdir()
        super().__init__(folder)
        self.use(version)
        self.known = {}
        """What each slot was like before the first change."""

    def use(self, version):
        self.version, self.python = version, version.python


def upgrades(count, seed, folder):
    """Change the version `count` times, there and back."""
    chance = random.Random(seed)
    now = install("N", folder, present)
    before, what = earlier(folder)
    wrong, refused, slowest = [], 0, 0.0
    site = House(folder / "site", before)
    declare(site)
    try:
        site.ok("start")
        settle(site)
        for turn in range(count):
            target = now if site.version is before else before
            when = f"seed {seed}, change {turn} to {target.name}"
            try:
                took, refusal = change(site, target, chance)
            except AssertionError as problem:
                wrong.append(f"{when}: {problem}")
                break
            slowest = max(slowest, took)
            refused += refusal is not None
            wrong += [f"{when}: {each}" for each in examine(site)]
        number = finish(site)
    finally:
        site.close()
    wrong += check(site, number, f"seed {seed}")
    figures = (
        f"N-1 is {what}",
        f"{number:,} lines",
        f"{refused} refused in a sentence",
        f"handed over within {slowest:.1f} s",
    )
    return Verdict(count=count, violations=tuple(wrong), figures=figures)


def declare(site):
    words = [sys.executable, "-ISc", WRITER, "0.005", "10", str(site.folder)]
    logs = {"max_size": "200KB", "keep": 1000, "compress": False}
    site.workers(
        web={"command": words, "logs": logs},
        steady={"command": "sleep 100000"},
        crashed={
            "command": "[ -e crashed ] && exec sleep 100000; touch crashed; exit 3",
            "shell": True,
        },
        held={"command": "sleep 100000"},
        broken={"command": "exit 3", "shell": True, "max_restarts": 0},
    )


def settle(site):
    """Have a worker in each state that must outlive the change."""
    site.ok("pause", "held")
    site.until("crashed", PATIENCE, state="running", restarts=1)
    site.until("broken", PATIENCE, state="failed")
    site.until("steady", PATIENCE, state="running")
    site.known = rows(site)


def change(site, target, chance):
    """Hand over; gives the seconds it took, and the sentence if the other version would not."""
    origin, began = site.version, time.monotonic()
    in_one_step = chance.random() < 0.5
    if in_one_step:
        site.use(target)
        answer = site.run("restart", "--keep-workers")
    else:
        site.ok("stop", "--keep-workers")
        site.use(target)
        answer = site.run("start")
    if answer.code == 0:
        return time.monotonic() - began, None
    assert "UPH_" in answer.err, f"no sentence: {answer}"
    assert not {"UPH_INTERNAL", "Traceback"} & set(re.findall(r"\w+", answer.err)), answer
    # Whatever it would not take, the version before must still take up.
    site.use(origin)
    site.ok("start")
    return time.monotonic() - began, answer.err


def examine(site):
    """Compare with what was before; the pump is the new version's."""
    told = site.status()
    if told["supervisor"]["uphold"] != number_of(site.version):
        yield f"the supervisor is of version {told['supervisor']['uphold']}"
    found = rows(site)
    for slot, before in site.known.items():
        if found.get(slot) != before:
            yield f"'{slot}' was {before} and is {found.get(slot)}"
    place = str(site.version.folder).encode()
    try:
        eventually(
            lambda: [place in command_of(pid) for pid in pumps(site)] == [True],
            PATIENCE,
            "one pump, of the new version",
        )
    except AssertionError as problem:
        yield f"{problem}: {[command_of(pid) for pid in pumps(site)]}"
    yield from histories(site)


def rows(site):
    found = {row["slot"]: row for row in site.status()["workers"]}
    return {slot: {key: row[key] for key in SAME} for slot, row in found.items()}


def histories(site):
    """Whatever either version has put on record can be read, and its chain holds."""
    answer = site.run("events", "--json", "-n", "100000")
    numbers = [json.loads(line)["seq"] for line in answer.out.splitlines()]
    if answer.code or not numbers or numbers != list(range(numbers[0], numbers[-1] + 1)):
        yield f"events: exit {answer.code}, {numbers[:3]}...: {answer.err}"
    for words in (("audit", "verify"), ("jobs",), ("show", "web"), ("why", "held")):
        answer = site.run(*words)
        if answer.code or "Traceback" in answer.err:
            yield f"{words}: {answer}"


def install(name, folder, source):
    """Make a copy of the package and an interpreter that finds it, and what it needs."""
    place = folder / name
    source(place / "lib")
    venv.create(place / "env", symlinks=True, with_pip=False)
    python = place / "env/bin/python"
    (packages,) = (place / "env/lib").glob("python*/site-packages")
    needs = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    # In this order: the copy wins over whatever uphold is installed beside what it needs.
    lines = [str(place / "lib"), *dict.fromkeys(needs)]
    (packages / "copy.pth").write_text("\n".join(lines) + "\n")
    version = Version(name, place, python)
    found = subprocess.run(
        [python, "-Ic", "import uphold; print(uphold.__file__)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert found.startswith(str(place / "lib")), found
    return version


def present(place):
    """Copy the present source."""
    shutil.copytree(
        Path(uphold.__file__).parent,
        place / "uphold",
        ignore=shutil.ignore_patterns("__pycache__"),
    )


def earlier(folder):
    """Install the version before, and say what it is."""
    try:
        packed = subprocess.run(
            ["git", "-C", ROOT, "archive", "--format=zip", EARLIER, "src/uphold"],
            capture_output=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        version, what = install("N-1", folder, present), "the present source renumbered"
    else:
        version = install("N-1", folder, lambda place: unpack(packed, place))
        what = f"commit {EARLIER}"
    number = version.folder / "lib/uphold/version.py"
    number.write_text(f'"""Another version."""\n\n__version__ = "{OTHER_NUMBER}"\n')
    return version, what


def unpack(packed, place):
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(place.parent / "source")
    os.renames(place.parent / "source/src/uphold", place / "uphold")


def number_of(version):
    scope = {}
    exec((version.folder / "lib/uphold/version.py").read_text(), scope)
    return scope["__version__"]


if __name__ == "__main__":
    main({"upgrades": upgrades})
