"""`uphold once` as a function: what it prints, and what it leaves behind in our own process."""

from __future__ import annotations

import json
import signal

import pytest

from journeys.site import Site
from uphold.cli.main import main


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    made.close()


@pytest.mark.accepts("C-011", "C-006", "C-007")
def test_main_does_a_pass_and_gives_0_or_1(site, capsys):
    before = signal.getsignal(signal.SIGTERM)
    site.workers(web="exec sleep 600", idle={"command": ["sleep", "600"], "autostart": False})
    assert main(["once", "-c", str(site.config)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines() == [
        "started web: declared",
        "web   running, healthy",
        "idle  stopped, not wanted",
        "all is well",
    ]
    assert main(["once", "-c", str(site.config), "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    site.workers(web="exec sleep 600", bad={"command": ["/no/such/program"]})
    assert main(["once", "-c", str(site.config)]) == 1
    out = capsys.readouterr().out
    assert "failed to start bad: " in out
    assert "problem: bad is failed" in out
    assert out.splitlines()[-1] == "1 problem"
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.accepts("C-009", "C-015", "C-T02")
def test_without_a_configuration_it_says_so_and_gives_1(tmp_path, capsys):
    assert main(["once", "-c", str(tmp_path / "none.toml"), "--home", str(tmp_path / "h")]) == 1
    assert "UPH_CONFIG_MISSING" in capsys.readouterr().err
    assert main(["once", "-c", str(tmp_path / "none.toml"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "UPH_CONFIG_MISSING"


@pytest.mark.accepts("C-009")
def test_a_home_that_cannot_be_used_is_told_of(tmp_path, capsys):
    config = tmp_path / "uphold.toml"
    config.write_text('[workers.web]\ncommand = ["sleep", "600"]\n')
    (tmp_path / "file").write_text("in the way")
    assert main(["once", "-c", str(config), "--home", str(tmp_path / "file" / "h")]) == 1
    assert "uphold:" in capsys.readouterr().err
