"""Readiness by a descriptor, with real processes."""

from __future__ import annotations

import pytest

from uphold.core.specs import Limits, Probe
from uphold.testing.waiting import eventually


@pytest.mark.parametrize("limits", [Limits(), Limits(nice=5)], ids=["spawned", "forked"])
def test_a_line_on_its_descriptor_is_told_once(act, limits):
    async def scene(stage):
        told = []
        stage.driver.announcements.begin(lambda *about: told.append(about))
        ready = Probe(way="fd", target="7")
        go = stage.folder / "go"
        script = (
            f"while ! test -e {go}; do sleep 0.02; done; printf 'ab\\nc\\n' >&7; exec sleep 1000"
        )
        await stage.start("web", "sh", "-c", script, ready=ready, limits=limits)
        assert told == []
        go.touch()
        await eventually(lambda: told)
        assert told == [("web", 1)]
        await stage.start("mute", "sh", "-c", "exec 7>&-; exec sleep 1000", ready=ready)
        await eventually(lambda: stage.driver.announcements.listening == 0)
        assert told == [("web", 1)]

    act(scene)


def test_who_declares_none_gets_none(act):
    async def scene(stage):
        pid = await stage.start("web", "sleep", "1000")
        assert stage.driver.announcements.listening == 0
        assert pid

    act(scene)
