"""Targets that cannot be hosted name the module and the line."""

from __future__ import annotations

import pytest

from runner.nurseries import Nursery

WHOLE = """
import uphold
class Job(uphold.Worker):
    async def setup(self): pass
    async def run(self, stopping): pass
    def health(self): return uphold.Health()
class Half(uphold.Worker, abstract=True): pass
class Other: pass
def function(): pass
class Shell:
    class Inner(Job): pass
"""

WRONG = {
    "no module": ("gone:Job", "", ["no module 'gone'", "looked for in /"]),
    "no module in a package": ("pack.gone:Job", "", ["no module 'pack.gone'"]),
    "not a package": ("app.gone:Job", WHOLE, ["no module 'app.gone'", "not a package"]),
    "a missing import": ("app:Job", "import os\nimport nobody\n", ["no module 'nobody'", "(app.py:2)"]),
    "a wrong import": ("app:Job", "from os import nix\n", ["ImportError", "'nix'", "(app.py:1)"]),
    "syntax": ("app:Job", "x = 1\ndef :\n", ["SyntaxError", "(app.py:2)"]),
    "raising": ("app:Job", "import json\n\njson.loads('{')\n", ["JSONDecodeError", "(app.py:3)"]),
    "exiting": ("app:Job", "raise SystemExit(0)\n", ["SystemExit", "(app.py:1)"]),
    "no class": ("app:Jobb", WHOLE, ["no 'Jobb' in the module app (app.py)", "Did you mean 'Job'?"]),
    "no inner class": ("app:Shell.Outer", WHOLE, ["no 'Outer'"]),
    "no worker": ("app:Other", WHOLE, ["app:Other is a class and not an uphold.Worker"]),
    "no class at all": ("app:function", WHOLE, ["app:function is a function and not"]),
    "abstract": ("app:Half", WHOLE, ["app:Half is abstract"]),
    "incomplete": (
        "app:Job",
        "import uphold\n\nclass Job(uphold.Worker):\n    pass\n",
        ["TypeError", "class Job", "app.py:3", "no setup", "no run", "no health"],
    ),
    "no colon": ("app", WHOLE, ["'package.module:Class'", "'app'"]),
}  # fmt: skip


@pytest.mark.accepts("D-14", "D-21")
@pytest.mark.parametrize(("target", "text", "words"), WRONG.values(), ids=list(WRONG))
def test_a_target_that_is_wrong_is_named_with_its_place(nursery: Nursery, target, text, words):
    nursery.write("", "pack/__init__.py")
    nursery.write(text)
    code, _, err = nursery.end(nursery.host(target))
    [error] = nursery.errors
    assert (code, error["code"]) == (78, "UPH_PYTHON_TARGET")
    for word in words:
        assert word in error["message"]
    assert error["message"] in err
    assert "READY=1" not in nursery.said


def test_a_class_within_a_class_can_be_hosted(nursery: Nursery):
    nursery.write(WHOLE)
    assert nursery.end(nursery.host("app:Shell.Inner"))[0] == 0


def test_a_file_named_like_a_module_of_python_disturbs_the_worker_only(nursery: Nursery):
    """The worker's folder comes first for the worker, and not at all for the runner."""
    nursery.write("raise RuntimeError('not me')\n", "signal.py")
    nursery.write("MINE = True\n", "colours.py")
    nursery.write(WHOLE + "import colours\nprint(colours.MINE)\nimport sys\nprint(sys.argv)\n")
    code, out, _ = nursery.end(nursery.host())
    assert (code, out.splitlines()) == (0, ["True", "['app:Job']"])


def test_the_runner_says_how_it_is_called(nursery: Nursery):
    code, _, err = nursery.end(nursery.start("-m", "uphold.runner"))
    assert (code, err) == (2, "usage: python -m uphold.runner package.module:Class\n")
