"""Configurations of any content: they are read, or refused with problems that have a line."""

from __future__ import annotations

from uphold.config.advice import warnings
from uphold.config.finding import declared_home
from uphold.config.loading import load
from uphold.errors import ConfigInvalid
from uphold.wire.codecs import encode

BESIDE = "[workers.a]\ncommand = 'run ${K:x} ${TOKEN:y}'\nenv_file = '.env'\n"
ENVIRON = {"A": "value of a", "K_FROM_OUTSIDE": "\udcff", "PATH": "/usr/bin:/bin"}


class Configs:
    """Inputs are `toml`, `yaml` or `env`."""

    def __init__(self, folder):
        self._folder = folder

    async def open(self):
        pass

    async def close(self):
        pass

    async def take(self, kind, data):
        env = self._folder / ".env"
        env.unlink(missing_ok=True)
        path = self._folder / f"uphold.{'toml' if kind == 'env' else kind}"
        if kind == "env":
            env.write_bytes(data)
            data = BESIDE.encode()
        path.write_bytes(data)
        declared_home(str(path), ENVIRON)
        settings, problems = _loaded(path)
        if settings is None:
            lines = data.count(b"\n") + 1
            assert problems, "refused without a problem"
            for problem in problems:
                name, _, line = problem.at.rpartition(":")
                assert not name.endswith(".toml") or 1 <= int(line) <= lines, (
                    f"no such line: {problem}"
                )
                assert problem.text.endswith((".", "?")), f"not a sentence: {problem}"
        else:
            assert settings.source == str(path)
            encode(settings)
            warnings(settings, environ=ENVIRON)


def _loaded(path):
    try:
        return load(path, environ=ENVIRON), []
    except ConfigInvalid as refused:
        return None, refused.problems
