from __future__ import annotations

import threading

import pytest

from uphold.config.revisions import FileConfig
from uphold.errors import ConfigInvalid
from uphold.ports.configs import Asker

ONE = "[workers.a]\ncommand = 'one'\n"
TWO = "[workers.a]\ncommand = 'two'\n"


@pytest.fixture
def path(tmp_path):
    (tmp_path / "uphold.toml").write_text(ONE)
    return tmp_path / "uphold.toml"


@pytest.mark.accepts("M-06", "M-08", "B-96")
def test_the_version_rises_with_every_accepted_change_only(path):
    config = FileConfig(path, {})
    first = config.current
    assert first.version == 1
    path.write_text(ONE + "# a comment\n")
    config.reload()
    assert config.current is first
    path.write_text(TWO)
    assert config.reload().workers[0].command == ("two",)
    assert config.current.version == 2
    assert first.settings.workers[0].command == ("one",)


def test_workers_that_did_not_change_stay_the_same_values_in_the_order_of_the_file(path):
    config = FileConfig(path, {})
    (old,) = config.current.settings.workers
    path.write_text("[workers.b]\ncommand = 'b'\n" + ONE)
    b, a = config.reload().workers
    assert (b.name, a) == ("b", old)
    assert a is old
    path.write_text(TWO + "[workers.b]\ncommand = 'b'\n")
    changed, kept = config.reload().workers
    assert changed.command == ("two",)
    assert kept is b


@pytest.mark.accepts("P12", "B-30", "E-15")
@pytest.mark.parametrize("text", ["", "nonsense", "[workers.a]\n", None])
def test_a_wrong_file_keeps_the_old_settings(path, text):
    config = FileConfig(path, {})
    before = config.current
    path.unlink()
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigInvalid):
        config.reload()
    assert config.current is before
    path.write_text(TWO)
    config.reload()
    assert config.current.version == 2


@pytest.mark.accepts("M-12", "B-30")
def test_listeners_hear_of_accepted_changes_only(path):
    config = FileConfig(path, {})
    heard = []
    config.subscribe(heard.append)
    config.reload()
    path.write_text("wrong")
    with pytest.raises(ConfigInvalid):
        config.reload()
    path.write_text(TWO)
    config.reload()
    assert heard == [config.current]
    config.unsubscribe(heard.append)
    config.unsubscribe(heard.append)
    path.write_text(ONE)
    config.reload()
    assert len(heard) == 1


@pytest.mark.accepts("B-30")
def test_reloads_at_the_same_time_lose_no_version(path):
    config = FileConfig(path, {})
    heard = []
    config.subscribe(heard.append)

    def edit_and_reload(number):
        for turn in range(10):
            replacement = path.with_name(f"new-{number}")
            replacement.write_text(f"[workers.a]\ncommand = 'n{number}-{turn}'\n")
            replacement.replace(path)
            config.reload()

    threads = [threading.Thread(target=edit_and_reload, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [revision.version for revision in heard] == list(range(2, len(heard) + 2))
    assert config.current == heard[-1]
    assert config.reload() == heard[-1].settings


def test_a_revision_knows_who_had_it_read(path):
    config = FileConfig(path, {})
    ada = Asker(author="ada", origin="socket")
    config.reload(ada)
    assert config.current.asker is None, "nothing was changed by that"
    path.write_text("[workers.a]\ncommand = 'two'\n")
    config.reload(ada)
    assert config.current.asker is ada
    path.write_text("[workers.a]\ncommand = 'three'\n")
    config.reload()
    assert config.current.asker is None


def test_a_file_that_is_wrong_from_the_beginning_is_refused(tmp_path):
    with pytest.raises(ConfigInvalid):
        FileConfig(tmp_path / "uphold.toml", {})


@pytest.mark.accepts("B-53")
def test_the_environment_is_the_one_it_was_made_with(path):
    path.write_text("[workers.a]\ncommand = '${RUN}'\n")
    environ = {"RUN": "one"}
    config = FileConfig(path, environ)
    environ["RUN"] = "two"
    assert config.reload().workers[0].command == ("one",)


def test_it_knows_every_file_it_looked_at_also_those_that_are_missing(path):
    path.write_text(ONE + "env_file = 'x.env'\n")
    (path.parent / "x.env").write_text("A=1\n")
    config = FileConfig(path, {})
    names = [str(path), str(path.parent / ".env"), str(path.parent / "x.env")]
    assert list(config.marks) == names
    path.write_text(ONE + "env_file = 'y.env'\n")
    with pytest.raises(ConfigInvalid):
        config.reload()
    assert str(path.parent / "y.env") in config.marks
