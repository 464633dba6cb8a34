from __future__ import annotations

import pytest

from uphold.config.importing.recognising import KINDS, recognise


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("supervisord.conf", "", "supervisord"),
        ("shop.supervisor.conf", "", "supervisord"),
        ("Procfile", "", "procfile"),
        ("Procfile.dev", "", "procfile"),
        ("process-compose.yaml", "", "process-compose"),
        ("process-compose.override.yml", "", "process-compose"),
        ("shop@.service", "", "systemd"),
        ("shop.conf", "; x\n[program:web]\ncommand=x\n", "supervisord"),
        ("unit.txt", "[Unit]\n[Service]\nExecStart=x\n", "systemd"),
        ("dev.yml", "version: 1\nprocesses:\n  a: {command: x}\n", "process-compose"),
        ("procs", "# all\nweb: puma -p 3\nworker: sidekiq\n", "procfile"),
        ("compose.yaml", "services:\n  a: {image: x}\n", None),
        ("notes", "Dear all,\nweb: x\n", None),
        ("empty", "", None),
    ],
)
def test_a_file_is_recognised_by_its_name_else_by_its_content(name, text, kind):
    assert recognise(name, text) == kind
    assert kind is None or kind in KINDS
