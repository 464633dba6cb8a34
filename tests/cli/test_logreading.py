"""What `uphold logs` shows: the right lines, once each, and nothing a terminal would obey."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pump.homes import PumpHome, eventually
from uphold.cli.logreading import (
    Line,
    LogView,
    Look,
    Source,
    Wanted,
    grep_of,
    render,
)
from uphold.errors import EXIT_USAGE, UpholdError
from uphold.pump.indexes import RECORD

DAY = 1_767_225_600.0  # 2026-01-01T00:00:00Z


@pytest.fixture
def pumped(tmp_path: Path) -> Iterator[PumpHome]:
    place = PumpHome(tmp_path / "pumped")
    yield place
    place.close()


def write(logs: Path, name: str, *lines: tuple[float, str]) -> None:
    """Write a file and its index: each line with the second of its arrival."""
    logs.mkdir(exist_ok=True)
    text, records = b"", b""
    for second, line in lines:
        records += RECORD.pack(int((DAY + second) * 1_000_000), len(text))
        text += line.encode() + b"\n"
    place = logs / name
    place.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    os.utime(place, (DAY + second, DAY + second))
    (logs / f"{name.removesuffix('.gz')}.idx").write_bytes(records)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    write(folder, "api.log.2.gz", (1, "one"), (2, "two"))
    write(folder, "api.log.1", (3, "three"), (4, "four error"))
    write(folder, "api.log", (5, "five"), (6, "six error"))
    write(folder, "web.log", (2.5, "w-early"), (5.5, "w-late"))
    write(folder, "web.2.log", (5.7, "second slot"))
    write(folder, "web.2.err.log", (5.8, "its stderr"))
    write(folder, "@gateway.log", (1, "companion"))
    (folder / "runtime.log").write_text("{}\n")
    (folder / "supervisor.log").write_text("ours\n")
    return folder


def read(logs: Path, names: list[str] | None, **wishes: object) -> list[str]:
    with LogView(logs, names) as view:
        return [line.text.decode() for line in view.lines(Wanted(**wishes))]  # type: ignore[arg-type]


def test_all_files_of_a_log_are_read_in_order(logs: Path) -> None:
    assert read(logs, ["api"]) == ["one", "two", "three", "four error", "five", "six error"]


@pytest.mark.parametrize("last", [0, 1, 2, 3, 5, 6, 100])
def test_the_last_lines_reach_across_files(logs: Path, last: int) -> None:
    every = ["one", "two", "three", "four error", "five", "six error"]
    assert read(logs, ["api"], last=last) == (every[-last:] if last else [])


def test_several_workers_come_in_the_order_of_arrival(logs: Path) -> None:
    assert read(logs, None, since=DAY + 4) == [
        "four error",
        "five",
        "w-late",
        "second slot",
        "its stderr",
        "six error",
    ]


def test_a_worker_stands_for_all_its_slots_and_a_slot_for_itself(logs: Path) -> None:
    with LogView(logs, ["web"]) as view:
        assert [source.label for source in view.sources] == ["web", "web.2", "web.2:err"]
        assert view.width == len("web.2:err")
    assert read(logs, ["web.2"]) == ["second slot", "its stderr"]
    assert read(logs, ["@gateway"]) == ["companion"]
    assert read(logs, ["unknown"]) == []


def test_since_and_until_use_the_times_of_arrival(logs: Path) -> None:
    assert read(logs, ["api"], since=DAY + 2, until=DAY + 4) == ["two", "three", "four error"]
    assert read(logs, ["api"], since=DAY + 60) == []
    assert read(logs, ["api"], until=DAY) == []


def test_since_begins_with_a_whole_line_even_if_a_record_points_into_one(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write(logs, "api.log", (1, "first line"), (9, "second"))
    records = RECORD.pack(int((DAY + 1) * 1e6), 0) + RECORD.pack(int((DAY + 8) * 1e6), 6)
    (logs / "api.log.idx").write_bytes(records)
    assert read(logs, ["api"], since=DAY + 5) == ["second"]


def test_grep_comes_before_the_count(logs: Path) -> None:
    assert read(logs, ["api"], grep=grep_of("err.r$"), last=1) == ["six error"]
    assert read(logs, ["api"], grep=grep_of("o")) == ["one", "two", "four error", "six error"]


@pytest.mark.accepts("S45")
@pytest.mark.parametrize("pattern", ["(", "[z-a]", "a" * 501, "(?P<a"])
def test_a_pattern_that_is_none_is_a_usage_error(pattern: str) -> None:
    with pytest.raises(UpholdError) as caught:
        grep_of(pattern)
    assert caught.value.exit_code == EXIT_USAGE
    assert caught.value.remedy


@pytest.mark.parametrize("index", [None, b"", b"torn", os.urandom(160), RECORD.pack(0, 0)])
def test_a_missing_or_broken_index_costs_the_times_and_no_line(
    logs: Path, index: bytes | None
) -> None:
    path = logs / "api.log.idx"
    path.unlink()
    if index is not None:
        path.write_bytes(index)
    with LogView(logs, ["api"]) as view:
        lines = list(view.lines())
    assert [line.text for line in lines][-2:] == [b"five", b"six error"]
    assert [line.at for line in lines][:4] == [DAY + 1, DAY + 2, DAY + 3, DAY + 4]


def test_an_unfinished_line_is_shown(logs: Path) -> None:
    with (logs / "api.log").open("ab") as log:
        log.write(b"no end yet")
    assert read(logs, ["api"], last=2) == ["six error", "no end yet"]


def test_a_damaged_file_is_named_where_its_lines_would_be(logs: Path) -> None:
    whole = (logs / "api.log.2.gz").read_bytes()
    (logs / "api.log.2.gz").write_bytes(whole[:-12])
    lines = read(logs, ["api"])
    assert [line for line in lines if line.startswith("[uphold: the rest of api.log.2.gz")]
    assert {"three", "four error", "five", "six error"} <= set(lines)


@pytest.mark.accepts("D-38")
def test_without_any_log_there_is_nothing_to_read(tmp_path: Path) -> None:
    with LogView(tmp_path / "no-such-folder") as view:
        assert view.sources == []
        assert list(view.lines()) == []
        assert view.width == 0


def rendered(text: bytes, **look: object) -> str:
    return render(Line(Source("api"), DAY, text), Look(**look))  # type: ignore[arg-type]


@pytest.mark.accepts("S21")
def test_nothing_that_a_terminal_obeys_gets_through() -> None:
    for code in (*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x200B, 0x2028, 0xE0041):
        shown = rendered(f"a{chr(code)}b".encode())
        assert chr(code) not in shown or chr(code) == "\t"
        assert "\n" not in shown
    assert rendered(b"\x1b]0;owned\x07\x1b[2J") == "\\x1b]0;owned\\x07\\x1b[2J"
    assert rendered(b"\xff\xfe bin\x00") == "\\xff\\xfe bin\\x00"


def test_colours_and_carriage_returns_of_workers_are_dropped_and_text_stays() -> None:
    assert rendered(b"\x1b[1;31mred\x1b[0m\tand \xc3\xbcmlaut\r") == "red\tand ümlaut"


def test_prefixes_are_aligned_and_painted_by_the_caller() -> None:
    assert rendered(b"line", width=6) == "api    | line"
    painted = rendered(b"line", width=3, paint=lambda slot, text: f"<{slot}:{text}>")
    assert painted == "<api:api |> line"
    assert rendered(b"x", timestamps=True) == "2026-01-01T00:00:00.000Z x"
    unknown = render(Line(Source("api"), None, b"x"), Look(timestamps=True))
    assert unknown == f"{'-':<24} x"


class Steps:
    """Runs one step each time the follower has seen everything, then ends it."""

    def __init__(self, *steps: object) -> None:
        self._steps = list(steps)
        self._idle = 0

    def __call__(self) -> bool:
        if self._steps:
            step = self._steps.pop(0)
            if callable(step):
                step()
            return True
        self._idle += 1
        return self._idle < 12


def followed(
    logs: Path, *steps: object, names: list[str] | None = None, **wishes: object
) -> list[str]:
    wanted = Wanted(**({"last": 0} | wishes))  # type: ignore[arg-type]
    with LogView(logs, names) as view:
        return [line.text.decode() for line in view.follow(wanted, Steps(*steps))]


def append(path: Path, text: str) -> object:
    def step() -> None:
        with path.open("a") as log:
            log.write(text)

    return step


def test_following_shows_a_line_once_it_is_finished(logs: Path) -> None:
    log = logs / "api.log"
    assert followed(
        logs, append(log, "sev"), append(log, "en\neight\nni"), append(log, "ne\n"), names=["api"]
    ) == ["seven", "eight", "nine"]


def test_following_begins_with_the_last_lines_and_an_unfinished_one_is_not_shown_twice(
    logs: Path,
) -> None:
    append(logs / "api.log", "begun")()  # type: ignore[operator]
    step = append(logs / "api.log", " and ended\n")
    assert followed(logs, step, names=["api"], last=2) == ["six error", "begun and ended"]
    assert followed(logs, append(logs / "api.log", "next\n"), names=["api"]) == ["next"]


def test_following_since_a_time_shows_nothing_older_and_everything_newer(logs: Path) -> None:
    step = append(logs / "api.log", "new\n")
    assert followed(logs, step, names=["api"], last=None, since=DAY + 60) == ["new"]
    step = append(logs / "api.log", "newer error\n")
    found = followed(logs, step, names=["api"], last=None, since=DAY + 4, grep=grep_of("error"))
    assert found == ["four error", "six error", "newer error"]


def test_a_log_that_begins_later_is_followed_too(logs: Path) -> None:
    steps = [append(logs / "late.log", "first\n"), *[None] * 10, append(logs / "late.log", "2nd\n")]
    assert followed(logs, *steps) == ["first", "2nd"]


def test_an_emptied_log_is_followed_from_its_new_beginning(logs: Path) -> None:
    def empty() -> None:
        os.truncate(logs / "api.log", 0)

    steps = [append(logs / "api.log", "x\n"), empty, append(logs / "api.log", "new\n")]
    assert followed(logs, *steps, names=["api"]) == ["x", "new"]


def test_a_long_line_shown_in_part_goes_on_after_rotation_without_doubling(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    log = logs / "api.log"
    log.write_bytes(b"begin\n")

    def rotate_by_hand() -> None:
        text = log.read_bytes()
        cut = text.rfind(b"\n") + 1
        (logs / ".api.log.rest").write_bytes(text[cut:])
        os.truncate(log, cut)
        log.rename(logs / "api.log.1")
        (logs / ".api.log.rest").rename(log)

    steps = [append(log, "L" * 10_000), rotate_by_hand, append(log, "M" * 100 + "\nend\n")]
    pieces = followed(logs, *steps, names=["api"])
    assert "".join(pieces) == "L" * 10_000 + "M" * 100 + "end"


def test_lines_that_were_rotated_away_are_not_passed_over_in_silence(logs: Path) -> None:
    def rotate_everything_away() -> None:
        for path in list(logs.glob("api.log*")):
            path.unlink()
        write(logs, "api.log", (90, "much later"))

    lines = followed(logs, None, rotate_everything_away, names=["api"])
    assert lines[0].startswith("[uphold: lines were rotated away")
    assert lines[1:] == ["much later"]


@pytest.mark.accepts("P13", "E-10")
@pytest.mark.parametrize("compress", [False, True])
def test_following_a_real_pump_across_rotations_shows_every_line_once(
    pumped: PumpHome, compress: bool
) -> None:
    total = 30_000
    pumped.configure(max_size=60_000, keep=1000, compress=compress)
    fifo = pumped.fifo("w.out")
    os.write(fifo, b"00000000\n")
    pumped.started()
    eventually(lambda: pumped.text("w.log") == b"00000000\n")
    code = (
        "import os, time\n"
        f"for n in range(1, {total}):\n"
        "    os.write(1, b'%08d\\n' % n)\n"
        "    if n % 3000 == 0: time.sleep(0.02)\n"
    )
    worker = pumped.worker(fifo, code)
    seen: list[bytes] = []
    pause = threading.Event()

    def wait() -> bool:
        pause.wait(0.002)
        return not seen or seen[-1] != b"%08d" % (total - 1)

    with LogView(pumped.logs, ["w"]) as view:
        for line in view.follow(Wanted(last=10), wait):
            seen.append(line.text)
            assert line.at is not None
    assert worker.wait() == 0
    assert pumped.text("w.log").split() == [b"%08d" % number for number in range(total)]
    assert seen == [b"%08d" % number for number in range(total)]
    assert len(pumped.places("w.log")) >= 4


def test_times_of_a_real_pump_are_those_of_arrival(pumped: PumpHome) -> None:
    pumped.configure()
    fifo = pumped.fifo("w.out")
    pumped.started()
    pause = threading.Event()
    for text in (b"one\n", b"two\n", b"three\n"):
        os.write(fifo, text)
        eventually(lambda text=text: pumped.text("w.log").endswith(text))
        pause.wait(0.05)
    with LogView(pumped.logs) as view:
        one, two, three = (line.at for line in view.lines())
        assert one is not None
        assert two is not None
        assert three is not None
        assert one < two < three
        later = [line.text for line in view.lines(Wanted(since=two))]
        assert later == [b"two", b"three"]
