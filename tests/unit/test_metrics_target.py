"""Push targets: what is accepted, what is refused, and what is never shown."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from taskbatch.errors import ConfigError
from taskbatch.metrics.target import push_target

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("url", "shown", "group"),
    [
        ("http://gw:9091", "http://gw:9091", "/metrics/job/taskbatch/queue/mail"),
        ("http://gw", "http://gw", "/metrics/job/taskbatch/queue/mail"),
        ("HTTP://gw:80/", "http://gw", "/metrics/job/taskbatch/queue/mail"),
        ("https://gw", "https://gw", "/metrics/job/taskbatch/queue/mail"),
        ("https://gw/push/", "https://gw", "/push/metrics/job/taskbatch/queue/mail"),
        ("http://[::1]:9091/a%20b", "http://[::1]:9091", "/a%20b/metrics/job/taskbatch/queue/mail"),
        ("http://u:p@gw:1", "http://gw:1", "/metrics/job/taskbatch/queue/mail"),
    ],
)
def test_urls(url: str, shown: str, group: str) -> None:
    target = push_target(url)

    assert str(target) == shown
    assert target.group("mail") == group


def test_queues_named_like_directories_have_a_group_too() -> None:
    target = push_target("http://gw")

    assert target.group(".") == "/metrics/job/taskbatch/queue@base64/Lg=="
    assert target.group("..") == "/metrics/job/taskbatch/queue@base64/Li4="
    assert target.group("a..b") == "/metrics/job/taskbatch/queue/a..b"


def test_credentials_in_the_url_are_basic_auth() -> None:
    assert push_target("http://me:p%40ss%2Fword@gw").authorization == "Basic bWU6cEBzcy93b3Jk"
    assert push_target("http://me@gw").authorization == "Basic bWU6"
    assert push_target("http://me@gw", password="p@ss/word").authorization == "Basic bWU6cEBzcy93b3Jk"


def test_credentials_apart() -> None:
    assert push_target("http://gw", user="me", password="p@ss/word").authorization == "Basic bWU6cEBzcy93b3Jk"
    assert push_target("http://gw", token="abc").authorization == "Bearer abc"
    assert push_target("http://gw", user="", password="", token="").authorization is None


SECRET = "s3cret%2F"


@pytest.mark.parametrize(
    ("url", "options"),
    [
        (f"gw:{SECRET}", {}),
        ("", {}),
        (f"ftp://u:{SECRET}@gw", {}),
        (f"file:///{SECRET}", {}),
        (f"http://u:{SECRET}@", {}),
        (f"http://u:{SECRET}@gw:port", {}),
        (f"http://u:{SECRET}@gw:99999", {}),
        (f"http://u:{SECRET}@[gw", {}),
        (f"http://u:{SECRET}@gw/?a=b", {}),
        (f"http://u:{SECRET}@gw/#a", {}),
        (f"http://u:{SECRET}@gw/ a", {}),
        (f"http://u:{SECRET}@gw\r\nX: y", {}),
        (f"http://u:{SECRET}@gw", {"user": "me"}),
        (f"http://u:{SECRET}@gw", {"password": "s3cret"}),
        (f"http://u:{SECRET}@gw", {"token": "s3cret"}),
        (f"http://:{SECRET}@gw", {}),
        ("http://gw", {"user": "me", "token": "s3cret"}),
        ("http://gw", {"password": "s3cret"}),
        ("http://gw", {"user": "a:b", "password": "s3cret"}),
        ("http://gw", {"token": "s3cret\n"}),
        ("http://gw", {"ca_file": "ca.pem"}),
    ],
)
def test_what_cannot_work_is_refused_in_one_line_without_secrets(url: str, options: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as refused:
        push_target(url, **options)

    text = str(refused.value)
    assert text.startswith("pushgateway: ")
    assert "s3cret" not in text
    assert "\n" not in text
    # Neither must a log of the whole chain show it.
    assert refused.value.__cause__ is None


def test_the_ca_file_survives_a_change_of_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    target = push_target("https://gw", ca_file="ca.pem")

    assert target.ca_file == os.path.join(tmp_path, "ca.pem")  # noqa: PTH118 - the text, not the path


def test_no_text_form_shows_a_secret() -> None:
    basic = push_target("http://me:s3cret@gw/base")
    bearer = push_target("http://gw", token="s3cret")

    for target in (basic, bearer):
        assert "s3cret" not in f"{target} {target!r} {target.__doc__}"


def test_redaction_knows_every_form_a_secret_is_sent_in() -> None:
    basic = push_target("http://me:p%40ss%2Fword@gw")
    bearer = push_target("http://gw", token="t0/ken")

    assert basic.redact("p@ss/word p%40ss%2Fword p%40ss/word bWU6cEBzcy93b3Jk me") == "*** *** *** *** me"
    assert bearer.redact("Bearer t0/ken, t0%2Fken") == "Bearer ***, ***"
    assert push_target("http://gw").redact("nothing to hide") == "nothing to hide"
