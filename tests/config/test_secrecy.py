from __future__ import annotations

import pytest

from uphold.config.secrecy import Secrets, is_telling


@pytest.mark.parametrize(
    "name",
    ["TOKEN", "API_TOKEN", "apiKey_KEY", "DB_PASSWORD", "db.passwd", "SECRET", "AWS_SECRET_ACCESS_KEY",
     "api-key", "KEY", "PGPASSWORD", "SENTRY_DSN", "DB_PW", "client_secret", "GH_PAT"],
)  # fmt: skip
def test_telling_names(name):
    assert is_telling(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "PATH",
        "LEVEL",
        "MONKEY",
        "KEYBOARD",
        "PATTERN",
        "COMPASS",
        "TLS_KEY_FILE",
        "TOKEN_PATH",
        "HOME",
    ],
)
def test_other_names(name):
    assert not is_telling(name)


@pytest.mark.accepts("E-18", "S43")
@pytest.mark.parametrize("value", ["hunter2x", "correcthorse", "/9j/4AAQ", "12345678", "a b c d"])
def test_under_a_telling_name_nearly_everything_is_secret(value):
    secrets = Secrets()
    secrets.named("API_TOKEN", value)
    assert secrets.all() == (value,)


@pytest.mark.parametrize("value", ["true", "false", "100000", "short", ""])
def test_not_what_would_blot_out_everything(value):
    secrets = Secrets()
    secrets.named("API_TOKEN", value)
    secrets.handed_in("X", value)
    assert secrets.all() == ()


@pytest.mark.parametrize(
    "value",
    ["production", "/srv/app/data", "./relative", "8080", "127.0.0.1:8001", "30s", "10MB",
     "db.example.com", "Europe/Berlin", "en_US.UTF-8", "web-01", "us-east-1", "python3.11", "v1.2.3-rc1", "http://localhost:80/x",
     "2020-01-01", "two words"],
)  # fmt: skip
def test_harmless_values_that_were_handed_in(value):
    secrets = Secrets()
    secrets.handed_in("SETTING", value)
    assert secrets.all() == ()


@pytest.mark.accepts("E-18", "S43")
@pytest.mark.parametrize(
    "value", ["4f9a0c77de", "sk-live-99x", "https://h/?sig=abc", "eyJ0bGciOi.J9", "tok-123456"]
)
def test_opaque_values_that_were_handed_in_are_secret(value):
    secrets = Secrets()
    secrets.handed_in("SETTING", value)
    assert value in secrets.all()


@pytest.mark.accepts("E-18", "S43")
def test_passwords_in_addresses_and_options():
    secrets = Secrets()
    secrets.named("DATABASE_URL", "postgres://user:s3cretpw@host/db")
    secrets.in_command(["run", "--token", "tok-value", "--password=pw-value", "-v", "plain-value"])
    secrets.in_command(["curl", "https://me:other-pw@host/"])
    assert secrets.all() == ("tok-value", "other-pw", "pw-value", "s3cretpw")


def test_longest_first_so_that_none_is_hidden_only_in_part():
    secrets = Secrets()
    for value in ("secret", "secret-longer", "abcdef"):
        secrets.named("token", value)
    assert secrets.all() == ("secret-longer", "abcdef", "secret")
