"""Names of keys: a public contract, and all of a queue's in one slot."""

from __future__ import annotations

import pytest

from taskbatch.errors import ConfigError
from taskbatch.keys import Keys, limit_state, queue_names

KEYS = Keys("taskbatch", "mail")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("pending", "taskbatch:{mail}:pending"),
        ("recovered", "taskbatch:{mail}:recovered"),
        ("suspects", "taskbatch:{mail}:suspects"),
        ("runs", "taskbatch:{mail}:runs"),
        ("runs_info", "taskbatch:{mail}:runs:info"),
        ("config", "taskbatch:{mail}:config"),
        ("scheduled", "taskbatch:{mail}:scheduled"),
        ("dead", "taskbatch:{mail}:dead"),
        ("totals", "taskbatch:{mail}:totals"),
        ("totals_push", "taskbatch:{mail}:totals:push"),
        ("history", "taskbatch:{mail}:history"),
        ("paused", "taskbatch:{mail}:paused"),
        ("limit", "taskbatch:{mail}:limit"),
    ],
)
def test_a_key_is_named_as_promised(name: str, key: str) -> None:
    assert getattr(KEYS, name) == key


def test_a_run_has_three_lists() -> None:
    assert KEYS.own_lists("r1") == [
        "taskbatch:{mail}:processing:r1:0",
        "taskbatch:{mail}:processing:r1:1",
        "taskbatch:{mail}:processing:r1:2",
    ]


def test_other_keys() -> None:
    assert KEYS.unique("order-7") == "taskbatch:{mail}:unique:order-7"
    assert limit_state("taskbatch", "email.send", "tenant") == "taskbatch:limit:{email.send}:tenant"
    assert queue_names("taskbatch") == "taskbatch:queues"


@pytest.mark.parametrize("odd", ["x" * 65, "é" * 33, "{evil}", "sha256-" + "0" * 64])
def test_long_or_odd_keys_are_hashed(odd: str) -> None:
    """Also one that looks like a hash: or two different keys could share one limit."""
    short = KEYS.unique(odd).removeprefix("taskbatch:{mail}:unique:")

    assert short.startswith("sha256-")
    assert len(short) == 71
    assert short != odd


def test_two_long_keys_stay_two() -> None:
    assert KEYS.unique("x" * 100) != KEYS.unique("x" * 101)


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 64])
def test_allowed_queue_names(name: str) -> None:
    assert Keys("taskbatch", name).queue == name


@pytest.mark.parametrize("name", ["", "a b", "a{b}", "a:b", "é", "x" * 65, "a\n"])
def test_a_queue_name_that_is_not_allowed(name: str) -> None:
    with pytest.raises(ConfigError, match="queue name"):
        Keys("taskbatch", name)


@pytest.mark.parametrize("prefix", ["", "a b", "a{b}", "x" * 65])
def test_a_prefix_that_is_not_allowed(prefix: str) -> None:
    with pytest.raises(ConfigError, match="prefix"):
        Keys(prefix, "mail")
