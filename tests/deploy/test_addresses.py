"""Where updates may come from, and what may be a name."""

from __future__ import annotations

import pytest

from uphold.deploy.addresses import allowed, is_id, is_plain_name
from uphold.errors import NotPermitted


@pytest.mark.parametrize(
    ("url", "protocol"),
    [
        ("https://git.example/team/repo.git", "https"),
        ("https://me:secret@git.example:8443/repo", "https"),
        ("ssh://git@git.example/repo.git", "ssh"),
        ("ssh://git.example:2222/~me/repo.git", "ssh"),
        ("git@git.example:team/repo.git", "ssh"),
        ("git@git.example:/srv/repo.git", "ssh"),
        ("/srv/git/my repo.git", "file"),
    ],
)
def test_what_is_allowed_and_how_it_is_reached(url: str, protocol: str):
    assert allowed(url).protocol == protocol
    assert "secret" not in allowed(url).shown


@pytest.mark.accepts("S35", "S36")
@pytest.mark.parametrize(
    "url",
    [
        "",
        "ext::sh -c 'touch evil'",
        "fd::17",
        "file:///srv/repo.git",
        "file::/srv/repo.git",
        "http://git.example/repo.git",
        "git://git.example/repo.git",
        "ftp://git.example/repo.git",
        "--upload-pack=touch evil",
        "-oProxyCommand=evil",
        "ssh://-oProxyCommand=evil/repo",
        "ssh://-oProxyCommand=evil@host/repo",
        "https://-evil/repo",
        "git@-oProxyCommand=evil:repo",
        "-x@host:repo",
        "git@host:-repo",
        "git@host::repo",
        "host:repo",
        "../repo",
        "repo",
        "~/repo",
        "C:\\repo",
        "https://git.example/re po",
        "https://git.example/repo\nhttps://evil/",
        "/srv/repo\n",
    ],
)
def test_everything_else_is_refused(url: str):
    with pytest.raises(NotPermitted) as refused:
        allowed(url)
    assert refused.value.code == "UPH_DEPLOY_REMOTE"


def test_a_refused_address_is_shown_without_its_password():
    with pytest.raises(NotPermitted) as refused:
        allowed("http://me:secret@git.example/repo")
    assert "secret" not in str(refused.value)


@pytest.mark.accepts("S35")
def test_names_are_never_options_ranges_or_paths():
    assert all(map(is_plain_name, ("main", "origin", "release/1.2", "feature_x", "v1.0-rc")))
    wrong = ("", "-x", "--upload-pack=x", "a..b", "a b", "a~1", "a^", "a:b", "@{u}", "a@{1}", "/a")
    more = (
        "a/",
        "a//b",
        ".a",
        "a/.b",
        "a.lock",
        "a.",
        "a\n",
        "a*",
        "a?",
        "a[",
        "a\\",
        "refs.lock/x",
    )
    assert not any(map(is_plain_name, (*wrong, *more)))


def test_ids_are_whole_and_nothing_else():
    assert is_id("a" * 40)
    assert is_id("0" * 64)
    assert not any(map(is_id, ("", "a" * 39, "A" * 40, "HEAD", "a" * 40 + "\n", "g" * 40)))
