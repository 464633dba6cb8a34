"""What `import uphold` costs, and gives."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import uphold
from uphold import sdk

LOADED = "import json, sys; {} ; print(json.dumps(sorted(sys.modules)))"


def loaded(program: str) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-I", "-c", LOADED.format(program)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(ran.stdout))


def test_importing_uphold_imports_next_to_nothing():
    more = loaded("import uphold") - loaded("pass")
    assert more == {"uphold", "uphold.version"}


def test_a_script_that_beats_does_not_pay_for_asyncio():
    more = loaded("import uphold; uphold.beat()")
    assert not {"asyncio", "inspect", "dataclasses"} & more


def test_the_front_gives_what_the_sdk_has_and_names_what_it_has_not():
    assert set(sdk.__all__) == set(uphold.__all__) - {"__version__"}
    with pytest.raises(AttributeError, match="module 'uphold' has no attribute 'Wrker'"):
        uphold.Wrker  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'uphold\.sdk' has no attribute 'Wrker'"):
        sdk.Wrker  # noqa: B018
