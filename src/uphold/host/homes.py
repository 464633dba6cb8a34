"""Where things lie in a home directory. Names only; nothing is opened or made here."""

from __future__ import annotations

from pathlib import Path


class Home:
    """The paths of one supervisor's home (absolute, links resolved)."""

    __slots__ = ("_run", "_slots", "path")

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).resolve()
        self._slots = str(self.slots)
        self._run = str(self.run)

    @property
    def lock(self) -> Path:
        """Who owns this home (JSON), and the lock itself."""
        return self.path / "lock"

    @property
    def runtime(self) -> Path:
        """The mirror of the current state, for people and scripts."""
        return self.path / "runtime.json"

    @property
    def journal(self) -> Path:
        """The ledger."""
        return self.path / "journal.db"

    @property
    def last_stop(self) -> Path:
        """What the command line wrote when a stop failed."""
        return self.path / "last_stop.json"

    @property
    def slots(self) -> Path:
        """One lock file per slot."""
        return self.path / "slots"

    @property
    def run(self) -> Path:
        """FIFOs of worker output, the pump's socket and settings."""
        return self.path / "run"

    @property
    def logs(self) -> Path:
        """Log files."""
        return self.path / "logs"

    @property
    def spool(self) -> Path:
        """What the recorder says of itself, and rows that the shared database refused."""
        return self.path / "spool"

    def slot_lock(self, slot: str) -> str:
        """Name the lock file of a slot; as text, since every start and end asks for it."""
        return f"{self._slots}/{slot}.lock"

    def fifo(self, slot: str, stream: str = "out") -> str:
        """Name the FIFO that carries a slot's output; `err` only when streams are split."""
        return f"{self._run}/{slot}.{stream}"

    def log(self, slot: str, stream: str = "out") -> Path:
        """Name the log file of a slot; split streams keep stderr in a file of its own."""
        return self.logs / (f"{slot}.log" if stream == "out" else f"{slot}.err.log")
