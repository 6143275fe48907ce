"""Impossible settings are refused before anything starts."""

from __future__ import annotations

from typing import Any

import pytest

from taskbatch.errors import ConfigError
from taskbatch.settings import PushSettings, RedisSettings, RunSettings, redact, secrets_in


def test_the_defaults() -> None:
    run = RunSettings()

    assert run.queues == ("default",)
    assert (run.max_tasks, run.concurrency) == (100, 8)
    assert (run.wait, run.wait_due, run.max_runtime, run.lease, run.grace) == (1.0, 0.0, 300.0, 60.0, 20.0)
    assert (run.max_concurrent_runs, run.fail_on, run.remaining_exit_code) == (0, "never", 0)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"queues": ()}, "at least one queue"),
        ({"queues": ("a", "b", "a")}, "named twice"),
        ({"max_tasks": 0}, "--max-tasks"),
        ({"max_tasks": -1}, "--max-tasks"),
        ({"concurrency": 0}, "--concurrency"),
        ({"concurrency": 1001}, "--concurrency"),
        ({"lease": 2.9}, "--lease"),
        ({"max_runtime": 0.0}, "--max-runtime"),
        ({"max_runtime": -1.0}, "--max-runtime"),
        ({"wait": -0.1}, "negative"),
        ({"wait_due": -0.1}, "negative"),
        ({"grace": -0.1}, "negative"),
        ({"max_concurrent_runs": -1}, "--max-concurrent-runs"),
        ({"remaining_exit_code": -1}, "--remaining-exit-code"),
        ({"remaining_exit_code": 256}, "--remaining-exit-code"),
        ({"wait": 10.0, "max_runtime": 5.0}, "--wait"),
    ],
)
def test_an_impossible_setting_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        RunSettings(**wrong)


@pytest.mark.parametrize(
    "edge",
    [
        {"max_tasks": 1, "concurrency": 1, "lease": 3.0, "grace": 0.0, "remaining_exit_code": 255},
        {"max_tasks": None, "max_runtime": None, "wait": 1e6},
        {"wait": 5.0, "max_runtime": 5.0},
    ],
)
def test_the_edges_are_allowed(edge: dict[str, Any]) -> None:
    RunSettings(**edge)


def test_secrets_are_not_in_the_repr() -> None:
    redis = RedisSettings(url="redis://me:s3cret@host", password="s3cret")
    push = PushSettings(url="https://me:s3cret@gateway", password="s3cret", token="s3cret")

    assert "s3cret" not in f"{redis!r} {push!r}"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("redis://:pw@host/0", "redis://***@host/0"),
        ("rediss://me:p%40w@host/0", "rediss://***@host/0"),
        ("unix:///run/redis.sock?password=pw&db=1", "unix:///run/redis.sock?password=***&db=1"),
        ("rediss://host?ssl_password=a&db=1&SSL_Password=b", "rediss://host?ssl_password=***&db=1&SSL_Password=***"),
        ("redis://[::1]:6379/0", "redis://[::1]:6379/0"),
        # Not plain: who can say where the password ends?
        ("redis://me:p@w@host/0", "redis://***"),
        ("redis://me:p#w@host/0", "redis://***"),
        ("redis://me:p/w@host/0", "redis://***"),
        ("redis://host/0?password=p@w", "redis://***"),
        ("me:pw@host", "***"),
    ],
)
def test_a_url_is_shown_without_secrets(url: str, shown: str) -> None:
    assert redact(url) == shown


@pytest.mark.parametrize(
    ("url", "secrets"),
    [
        ("redis://host:6379/0", []),
        ("redis://user:p%40ss@host/0", ["p%40ss", "p@ss"]),
        ("redis://:p@s#s/@host/0", ["p@s#s/", "p@s#s/"]),
        ("redis://[user:pass@host", ["pass", "pass"]),
        ("rediss://host?password=p%2Bw&db=1&ssl_password=key", ["p%2Bw", "p+w", "key", "key"]),
    ],
)
def test_the_secrets_of_a_url_are_known_in_both_spellings(url: str, secrets: list[str]) -> None:
    assert secrets_in(url) == secrets


def test_credentials_of_a_gateway_are_known_as_they_are_sent() -> None:
    push = PushSettings(url="http://me:p%40ss@gateway", token="t0ken")

    assert push.secrets == ["p%40ss", "p@ss", "", "t0ken", "bWU6cEBzcw=="]
