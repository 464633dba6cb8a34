"""An interpreter with plug-ins in it: a small environment of its own, filled by real wheels."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import uphold

EXAMPLE = Path(__file__).parents[2] / "examples" / "flag-plugin"
MISHAPS = """
import os, time
from uphold.core.orders import PauseWorkers, RestartWorkers, ShutDown, SignalWorkers
from uphold.plugins import Handler, Urgency

def made(name, wish, **more):
    return Handler(name, Urgency.DIAGNOSTICS, 50, wish=wish, **more)

def raising(flag):
    raise LookupError("nobody told me of " + flag.worker_id)

def talking(flag):
    print("plug-ins may print")
    os.write(1, b"even so")
    return PauseWorkers(names=(flag.worker_id,))

def waiting(flag):
    while not os.path.exists(flag.params["for"]):
        time.sleep(0.05)
    return PauseWorkers(names=(flag.worker_id,))

def picky(value):
    raise RuntimeError("this check is broken")

raises = made("raises", raising)
leaves = made("leaves", lambda flag: exit(3))
dies = made("dies", lambda flag: os._exit(7))
hangs = made("hangs", lambda flag: time.sleep(3600))
talks = made("talks", talking)
waits = made("waits", waiting, params={"for": lambda value: ""})
fills = made("fills", lambda flag: bytearray(2 << 30))
silent = made("silent", lambda flag: None)
greedy = made("greedy", lambda flag: RestartWorkers(names=(flag.worker_id, "somebody")))
nobody = made("nobody", lambda flag: RestartWorkers(names=()))
wild = made("wild", lambda flag: RestartWorkers(names=42))
ending = made("ending", lambda flag: ShutDown())
waving = made("waving", lambda flag: SignalWorkers(names=(flag.worker_id,), signal="WAVE"))
careful = made("careful", talking, params={"size": picky})
clash = made("clash", talking, aliases=("pause",))
again = made("again", talking, aliases=("talks",))
misnamed = made("another", talking)
shouting = made("shouting", talking, aliases=("LOUD",))
late = made("late", talking)._replace(number=-1)
idle = made("idle", None)
plain = talking
"""
"""What plug-ins can do wrong, one each."""
OFFERED = [name.split(" = ")[0] for name in MISHAPS.splitlines() if " = made(" in name]


class Interpreter:
    """A Python that has uphold, and whatever is installed beside it."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        self.python = folder / "bin" / "python"
        self.packages = next(folder.glob("lib/python*/site-packages"))
        ours = (sysconfig.get_path("purelib"), Path(uphold.__file__).parents[1])
        (self.packages / "ours.pth").write_text("\n".join(map(str, ours)))
        self._wheels = folder / "wheels"
        self._wheels.mkdir()

    def install(self, name: str, code: str, entries: dict[str, str], *, pip: bool = False) -> None:
        """Install a package of one module from a wheel: unpacked, or by pip as anybody does."""
        wheel = self._wheels / f"{name}-1.0-py3-none-any.whl"
        about = f"{name}-1.0.dist-info"
        points = "\n".join(f"{key} = {value}" for key, value in entries.items())
        with zipfile.ZipFile(wheel, "w") as file:
            file.writestr(f"{name}.py", code)
            file.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0")
            file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            file.writestr(f"{about}/entry_points.txt", f"[uphold.handlers]\n{points}\n")
            file.writestr(f"{about}/RECORD", "")
        if not pip:
            zipfile.ZipFile(wheel).extractall(self.packages)
            return
        words = ["--no-index", "--no-deps", "--quiet", "--disable-pip-version-check"]
        words += ["--target", str(self.packages), str(wheel)]
        subprocess.run([sys.executable, "-m", "pip", "install", *words], check=True)

    def install_example(self, *, pip: bool = False) -> None:
        """Install the plug-in that the manual shows."""
        project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
        code = (EXAMPLE / "orion_handlers.py").read_text()
        entries = project["entry-points"]["uphold.handlers"]
        self.install("orion_handlers", code, entries, pip=pip)

    def install_mishaps(self) -> None:
        """Install a package in which nothing is as it should be, and one that is broken."""
        entries = {name: f"mishaps:{name}" for name in (*OFFERED, "plain", "absent")}
        self.install("mishaps", MISHAPS, entries)
        broken = {"broken": "broken:handler"}
        self.install("broken", "raise ImportError('half of it is missing')\n", broken)
        self.install("second", "", {"silent": "second:silent"})
