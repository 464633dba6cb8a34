"""What a supervisor and a single pass both need."""

from __future__ import annotations

import pytest

from uphold.config.revisions import FileConfig
from uphold.daemon.equipping import Redactors


@pytest.mark.accepts("T24")
def test_secrets_of_earlier_files_stay_hidden(tmp_path):
    path = tmp_path / "uphold.toml"

    def declare(secret):
        path.write_text(
            f'[workers.web]\ncommand = ["sleep", "9"]\nenvironment = {{ API_TOKEN = "{secret}" }}\n'
        )

    declare("first-zX81kd92-secret")
    config = FileConfig(str(path), {})
    redactors = Redactors(config)
    before = redactors.current()
    assert "first-zX81kd92" not in before.text("it said first-zX81kd92-secret")
    declare("second-pQ77ww13-secret")
    config.reload()
    shown = redactors.current().text("first-zX81kd92-secret, then second-pQ77ww13-secret")
    assert "zX81kd92" not in shown
    assert "pQ77ww13" not in shown
    assert redactors.current() is redactors.current(), "made once for each file"
