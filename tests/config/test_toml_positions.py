"""Lines of keys, wherever TOML lets them stand."""

from __future__ import annotations

import tomllib

from hypothesis import example, given, strategies

from uphold.config.toml_positions import find_positions

TEXT = '''# comment = "no"
top = 1
[workers.api]           # 3
command = [
  "a", # ] not the end
  """b
  ["""",
  'c,]',
]                       # 9
stop.grace = "5s"
stop.command = ["x", {y = 1}]
environment = { A = "}", "B C" = 'x', D.E = 1 }
"quoted \\u0041" = 1
multi = \'\'\'
[workers.no]
key = 1
\'\'\'
after = 1979-05-27 07:32:00 # 18
[[list.of]]
x = 1
[list.of.sub]
y = 1
[[list.of]]
x = 2
  [ deep . "er" . 'est' ]
  z=true
'''


def test_every_way_of_writing_a_key():
    found = find_positions(TEXT)
    api = ("workers", "api")
    expected = {
        ("top",): 2,
        ("workers",): 3,
        api: 3,
        (*api, "command"): 4,
        (*api, "command", 0): 5,
        (*api, "command", 1): 6,
        (*api, "command", 2): 8,
        (*api, "stop"): 10,
        (*api, "stop", "grace"): 10,
        (*api, "stop", "command"): 11,
        (*api, "stop", "command", 0): 11,
        (*api, "stop", "command", 1): 11,
        (*api, "stop", "command", 1, "y"): 11,
        (*api, "environment"): 12,
        (*api, "environment", "A"): 12,
        (*api, "environment", "B C"): 12,
        (*api, "environment", "D"): 12,
        (*api, "environment", "D", "E"): 12,
        (*api, "quoted A"): 13,
        (*api, "multi"): 14,
        (*api, "after"): 18,
        ("list",): 19,
        ("list", "of"): 19,
        ("list", "of", 0): 19,
        ("list", "of", 0, "x"): 20,
        ("list", "of", 0, "sub"): 21,
        ("list", "of", 0, "sub", "y"): 22,
        ("list", "of", 1): 23,
        ("list", "of", 1, "x"): 24,
        ("deep",): 25,
        ("deep", "er"): 25,
        ("deep", "er", "est"): 25,
        ("deep", "er", "est", "z"): 26,
    }
    assert found == expected
    assert set(found) == set(paths(tomllib.loads(TEXT)))


def test_windows_line_ends_count_once():
    found = find_positions("a = 1\r\n\r\n[b]\r\nc = [\r\n1,\r\n2]\r\n")
    assert found == {("a",): 1, ("b",): 3, ("b", "c"): 4, ("b", "c", 0): 5, ("b", "c", 1): 6}


KEYS = strategies.sampled_from(["a", "b-1", '"q.\\"x"', "'l i'", "c.d", 'e . "f"'])
VALUES = strategies.recursive(
    strategies.sampled_from(["1", "'x'", '"y\\"#"', '"""\nm"""', "'''\n[t]\n'''", "1.5", "true"]),
    lambda inner: (
        strategies.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | inner.map(lambda value: f"{{k = {value}}}")
    ),
    max_leaves=6,
)


@given(strategies.lists(strategies.tuples(KEYS, VALUES), max_size=6))
def test_every_part_of_a_right_text_is_placed(pairs):
    lines = [f"[t{number}]\n{key} = {value} # c" for number, (key, value) in enumerate(pairs)]
    text = "\n".join(lines)
    assert set(find_positions(text)) == set(paths(tomllib.loads(text)))


@example('"\\1" = 1')
@given(strategies.text(alphabet="a.='\"[]{},\n# \\1", max_size=60))
def test_no_text_makes_the_scan_fail_or_hang(text):
    find_positions(text)


def paths(value, where=()):
    if where:
        yield where
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths(item, (*where, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from paths(item, (*where, number))
