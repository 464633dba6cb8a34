from __future__ import annotations

from uphold.config.loading import load
from uphold.core.specs import JournalSpec


def test_a_file_without_these_sections_has_what_every_supervisor_has(tmp_path):
    path = tmp_path / "uphold.toml"
    path.write_text("[workers]\n")
    found = load(path, environ={})
    assert (found.store, found.inbox, found.deploy) == (None, None, None)
    assert found.journal == JournalSpec()
