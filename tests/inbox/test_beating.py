from __future__ import annotations

import os
import signal

import pytest

from inbox.sharing import lay_out, with_share
from uphold.core.notices import MISSING, UNANSWERED, Refused
from uphold.host.beats import LONGEST, Written
from uphold.inbox.beating import read_beat_file


def read(root, below, **given):
    """Read one file through a real helper."""

    async def work(tools):
        return await read_beat_file(tools.share, str(root / below), below)

    return with_share(root, work, **given)


@pytest.mark.accepts("C-133", "S26")
def test_a_file_is_read_as_it_is_and_what_is_none_is_no_exception(tmp_path):
    root = lay_out(tmp_path / "share")
    file = root / "00_STATE" / "beat.json"
    found = read(root, "00_STATE/beat.json")
    assert isinstance(found, Refused)
    assert found.reason == MISSING
    file.write_bytes(b"{}")
    os.utime(file, (1000.0, 1000.0))
    assert read(root, "00_STATE/beat.json") == Written(b"{}", 1000.0)
    (root / "00_STATE" / "link").symlink_to(file)
    (root / "00_STATE" / "large").write_bytes(b" " * (LONGEST + 1))
    for name in ("link", "large", "beat.json/below", "../../secret"):
        odd = read(root, f"00_STATE/{name}")
        assert isinstance(odd, Refused)
        assert odd.reason == "unreadable"
        assert f"00_STATE/{name}" in odd.text
        assert odd.text.endswith(".")
        assert not odd.text.endswith("..")


@pytest.mark.accepts("P17")
def test_of_a_share_that_is_silent_or_away_nothing_is_known(tmp_path):
    root = lay_out(tmp_path / "share")
    children = set()

    async def stopped(tools):
        await tools.share.look("00_STATE/beat.json")
        (helper,) = children
        os.kill(helper, signal.SIGSTOP)  # as one that waits for a server that does not answer
        try:
            return await read_beat_file(tools.share, "beat.json", "00_STATE/beat.json")
        finally:
            os.kill(helper, signal.SIGCONT)

    found = with_share(root, stopped, children=children, patience=1.0)
    assert found.reason == UNANSWERED
    assert "does not answer" in found.text
    (root / "00_STATE").rmdir()
    found = read(root, "00_STATE/beat.json")
    assert found.reason == UNANSWERED
    assert "00_STATE" in found.text
