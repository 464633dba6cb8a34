"""The tables `ready`, `live` and `heartbeat`, from text to values."""

from __future__ import annotations

import pytest

from uphold.config.loading import load
from uphold.core.specs import Heartbeat, Probe

ONE = "[workers.a]\ncommand = 'x'\n"


def spec(tmp_path, text):
    path = tmp_path / "uphold.toml"
    path.write_text(text)
    return load(path, environ={}).workers[0]


@pytest.mark.parametrize(
    ("text", "probe"),
    [
        ("{ http = 'http://a/x' }", Probe(way="http", target="http://a/x")),
        ("{ tcp = 'db:5432', every = '2s' }", Probe(way="tcp", target="db:5432", every=2.0)),
        ("{ tcp = 5432 }", Probe(way="tcp", target="127.0.0.1:5432")),
        ("{ exec = 'check -a \"b c\"' }", Probe(way="exec", command=("check", "-a", "b c"))),
        ("{ exec = ['check', 'b'] }", Probe(way="exec", command=("check", "b"))),
        ("{ log = '^up' }", Probe(way="log", target="^up")),
        ("{ notify = true }", Probe(way="notify")),
        ("{ fd = 4 }", Probe(way="fd", target="4")),
        (
            "{ tcp = 1, timeout = '2s', successes = 2, failures = 5, initial_delay = '1m' }",
            Probe(
                way="tcp",
                target="127.0.0.1:1",
                timeout=2.0,
                successes=2,
                failures=5,
                initial_delay=60.0,
            ),
        ),
    ],
)
def test_each_way_to_ask_becomes_a_probe(tmp_path, text, probe):
    assert spec(tmp_path, f"{ONE}ready = {text}\n").ready == probe


def test_a_worker_may_choose_another_way_than_the_defaults_and_keep_their_times(tmp_path):
    defaults = "[defaults]\nready = { tcp = 80, every = '5s' }\nlive.exec = 'check x'\n"
    found = spec(tmp_path, defaults + ONE + "ready = { notify = true }\nlive.failures = 1\n")
    assert found.ready == Probe(way="notify", every=5.0)
    assert found.live == Probe(way="exec", command=("check", "x"), failures=1)


def test_the_file_of_beats_lies_beside_the_configuration(tmp_path):
    found = spec(tmp_path, f"{ONE}heartbeat = {{ file = 'beat.json', stale_after = '30s' }}\n")
    assert found.heartbeat == Heartbeat(file=f"{tmp_path}/beat.json", stale_after=30.0)
    assert spec(tmp_path, ONE).heartbeat is None
