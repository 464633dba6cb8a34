"""The schema says what the reader does; checked with as much of JSON Schema as it uses."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from uphold.config.loading import examine
from uphold.config.schema import json_schema
from uphold.config.templates import KINDS, starter

SCHEMA = json_schema()
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}
ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples" / "quickstart" / "uphold.toml"


def fits(value, schema):
    if "$ref" in schema:
        return fits(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]])
    unknown = set(schema) - {
        "$schema", "$defs", "title", "description", "default", "type", "properties", "items", "enum",
        "additionalProperties", "propertyNames", "anyOf", "const", "pattern", "minimum", "maximum",
        "minLength", "minItems", "minProperties", "required",
    }  # fmt: skip
    assert not unknown
    if "anyOf" in schema and not any(fits(value, option) for option in schema["anyOf"]):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "const" in schema and value != schema["const"]:
        return False
    return "type" not in schema or (fits_type(value, schema["type"]) and fits_rest(value, schema))


def fits_type(value, types):
    return any(
        isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
        for name in ([types] if isinstance(types, str) else types)
    )


def fits_rest(value, schema):
    if isinstance(value, str):
        return len(value) >= schema.get("minLength", 0) and (
            "pattern" not in schema or re.search(schema["pattern"], value) is not None
        )
    if isinstance(value, list):
        return len(value) >= schema.get("minItems", 0) and all(
            fits(item, schema["items"]) for item in value
        )
    if isinstance(value, dict):
        if len(value) < schema.get("minProperties", 0) or set(schema.get("required", ())) - set(
            value
        ):
            return False
        names = schema.get("propertyNames", {})
        if "pattern" in names and not all(re.search(names["pattern"], key) for key in value):
            return False
        more = schema.get("additionalProperties", True)
        return all(fits_key(key, item, schema, more) for key, item in value.items())
    low, high = schema.get("minimum", float("-inf")), schema.get("maximum", float("inf"))
    return isinstance(value, bool) or low <= value <= high


def fits_key(key, item, schema, more):
    known = schema.get("properties", {})
    if key in known:
        return fits(item, known[key])
    return fits(item, more) if isinstance(more, dict) else more


def test_it_is_json_of_the_2020_12_draft():
    assert json.loads(json.dumps(SCHEMA))["$schema"].endswith("2020-12/schema")


@pytest.mark.parametrize("kind", KINDS)
def test_starters_fit_the_schema(kind):
    assert fits(tomllib.loads(starter(kind, "toml")), SCHEMA)
    assert fits(yaml.safe_load(starter(kind, "yaml")), SCHEMA)


def test_the_quickstart_fits_the_schema():
    assert fits(tomllib.loads(QUICKSTART.read_text()), SCHEMA)


def test_every_configuration_in_the_papers_fits_the_schema():
    found = 0
    for page in (*ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md"), ROOT / "README.md"):
        for block in re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL):
            read = tomllib.loads(block)
            if "project" not in read:  # a package's own file
                assert fits(read, SCHEMA), (page.name, block)
                found += 1
    for path in ROOT.glob("examples/**/uphold.toml"):
        assert fits(tomllib.loads(path.read_text()), SCHEMA), path
        found += 1
    assert found > 20


def test_every_default_fits_its_own_description():
    def defaults(schema):
        for name, inner in schema.get("properties", {}).items():
            if "default" in inner:
                yield name, inner
            yield from defaults(inner)

    found = list(defaults(SCHEMA["properties"]["defaults"]))
    assert len(found) >= 25
    for name, inner in found:
        assert fits(inner["default"], inner), name


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("replicas = 3", True), ("replicas = '${N:3}'", True), ("replicas = 1001", False),
        ("replicas = '3'", False), ("restart = 'no'", True), ("restart = 'maybe'", False),
        ("enabled = 1", False), ("stable_after = '5m'", True), ("stable_after = 5", True),
        ("stable_after = 'soon'", False), ("logs.max_size = '10MB'", True),
        ("logs.max_size = '10M'", False), ("umask = '022'", True), ("umask = 22", False),
        ("max_restarts = 'unlimited'", True), ("max_restarts = 'x'", False), ("comand = 'x'", False),
        ("stop = { graze = 1 }", False), ("depends_on = ['a']", True), ("depends_on = 3", False),
        ("environment = { A = 1, B = 'x', C = true }", True), ("environment = { A = 1.5 }", False),
        ("success_exit_codes = []", False), ("backoff = { jitter = 0.5 }", True),
        ("backoff = { jitter = 2 }", False), ("limits = { nice = -20 }", True), ("team = 'a b'", False),
    ],
)  # fmt: skip
def test_schema_and_reader_agree(tmp_path, line, right):
    text = f"[workers.a]\ncommand = 'x'\n[workers.z]\ncommand = 'x'\n{line}\n"
    (tmp_path / "uphold.toml").write_text(text)
    assert fits(tomllib.loads(text), SCHEMA) is right
    assert (examine(tmp_path / "uphold.toml", environ={"N": "3"}).problems == ()) is right
