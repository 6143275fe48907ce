"""rate_limit: fixed windows by the server's clock, booking for who is denied."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.exceptions import ResponseError

from tests.lua.keyspace import Near

if TYPE_CHECKING:
    from tests.lua.world import World

STATE = "taskbatch:limit:{email.send}:tenant"
CENTURY = 3_153_600_000_000
"""A period, in ms, whose window 0 lasts from 1970 to 2070: no test runs into its end."""


def acquire(world: World, limit: int, *, returning: int = 0, fresh: int = 0, period: int = CENTURY) -> list[int]:
    """Return [granted to returning, granted to new, due times…]."""
    now = world.now
    answer: list[int] = world.call("rate_limit", [STATE], [limit, period, returning, fresh])
    assert answer[0] == Near(now)
    return answer[1:]


def state(world: World) -> dict[str, str]:
    found: dict[str, str] = world.dump()[STATE + " +ttl"]
    return found


def test_a_window_grants_up_to_its_limit(world: World) -> None:
    assert acquire(world, 3, fresh=2) == [0, 2]
    assert acquire(world, 3, fresh=1) == [0, 1]

    assert world.dump() == {STATE + " +ttl": {"w": "0", "n": "3", "b": "0", "bw": "0", "bn": "0"}}


def test_who_is_denied_is_booked_into_the_next_windows(world: World) -> None:
    dues = [CENTURY, CENTURY, 2 * CENTURY, 2 * CENTURY, 3 * CENTURY]

    assert acquire(world, 2, fresh=7) == [0, 2, *dues]

    assert state(world) == {"w": "0", "n": "2", "b": "0", "bw": "3", "bn": "1"}


def test_later_denials_are_booked_behind_earlier_ones(world: World) -> None:
    acquire(world, 2, fresh=5)

    assert acquire(world, 2, fresh=2) == [0, 0, 2 * CENTURY, 3 * CENTURY]


def test_returning_tasks_go_first(world: World) -> None:
    assert acquire(world, 3, returning=2, fresh=2) == [2, 1, CENTURY]


def test_newcomers_stay_behind_who_is_booked_for_this_window(world: World) -> None:
    world.seed(**{STATE: {"w": -1, "n": 2, "b": 0, "bw": 0, "bn": 2}})

    assert acquire(world, 3, fresh=2) == [0, 1, CENTURY]
    assert acquire(world, 3, returning=2) == [2, 0]

    assert state(world) == {"w": "0", "n": "3", "b": "2", "bw": "1", "bn": "1"}


def test_newcomers_get_nothing_while_later_windows_are_booked(world: World) -> None:
    world.seed(**{STATE: {"w": -1, "n": 2, "b": 0, "bw": 1, "bn": 1}})

    assert acquire(world, 2, fresh=1) == [0, 0, CENTURY]


def test_a_booking_takes_no_permit_before_its_task_is_back(world: World) -> None:
    acquire(world, 1, fresh=2)

    assert state(world)["n"] == "1"
    assert acquire(world, 1, returning=1) == [0, 0, 2 * CENTURY]


def test_a_clock_that_went_back_opens_no_window_again(world: World) -> None:
    world.seed(**{STATE: {"w": 4, "n": 3, "b": 0, "bw": 0, "bn": 0}})

    assert acquire(world, 3, returning=1, fresh=1) == [0, 0, 5 * CENTURY, 5 * CENTURY]

    assert state(world) == {"w": "4", "n": "3", "b": "0", "bw": "5", "bn": "2"}


def test_a_lower_limit_holds_at_once(world: World) -> None:
    acquire(world, 5, fresh=4)

    assert acquire(world, 2, returning=1, fresh=1) == [0, 0, CENTURY, CENTURY]


def test_the_state_is_gone_when_nobody_needs_it(world: World) -> None:
    now = world.call("rate_limit", [STATE], [1, 1000, 0, 3])[0]

    # Booked for two windows ahead, and one more for who comes late.
    assert world.admin.pexpiretime(STATE) == pytest.approx((now // 1000 + 4) * 1000, abs=2)


def test_the_real_clock_opens_the_next_window(world: World) -> None:
    """Whatever happens between, no window of 40 ms grants more than 4."""
    granted: Counter[int] = Counter()

    for _ in range(400):
        answer = world.call("rate_limit", [STATE], [4, 40, 0, 1])
        granted[answer[0] // 40] += answer[2]

    assert max(granted.values()) == 4
    assert len(granted) > 1


def test_a_key_of_another_type_is_not_touched(world: World) -> None:
    world.break_type(STATE)

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        acquire(world, 1, fresh=1)

    assert world.dump() == {STATE: {"foreign"}}


def windows_pass(world: World, windows: int) -> None:
    """Let windows pass: the state only knows how far away its windows are. Negative: the clock goes back."""
    for field in ("w", "bw"):
        if world.admin.hexists(STATE, field):
            world.admin.hincrby(STATE, field, -windows)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    limit=st.integers(1, 5),
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7)), max_size=15),
)
def test_who_comes_back_when_told_is_served(world: World, limit: int, steps: list[tuple[int, int]]) -> None:
    world.admin.delete(STATE)
    window = 0
    granted: Counter[int] = Counter()
    booked: Counter[int] = Counter()

    for passed, fresh in steps:
        for _ in range(passed):
            windows_pass(world, 1)
            window += 1
            # New ones ask first, then who is due: the order that is hardest on who is booked.
            to_returning, to_fresh, *dues = acquire(world, limit, fresh=fresh)
            granted[window] += to_fresh
            booked.update(window + due // CENTURY for due in dues)
            back = booked.pop(window, 0)
            to_returning, _, *dues = acquire(world, limit, returning=back)
            assert (to_returning, dues) == (back, [])
            granted[window] += back

    assert max(granted.values(), default=0) <= limit
    assert max(booked.values(), default=0) <= limit


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    limit=st.integers(1, 5),
    steps=st.lists(st.tuples(st.integers(-2, 3), st.integers(0, 7), st.integers(0, 7)), max_size=20),
)
def test_no_window_grants_more_than_its_limit(world: World, limit: int, steps: list[tuple[int, int, int]]) -> None:
    world.admin.delete(STATE)
    clock = 0
    granted: Counter[int] = Counter()

    for passed, returning, fresh in steps:
        windows_pass(world, passed)
        clock += passed
        to_returning, to_fresh, *dues = acquire(world, limit, returning=returning, fresh=fresh)
        counted_in = clock + int(state(world)["w"])
        granted[counted_in] += to_returning + to_fresh

        assert to_returning + to_fresh + len(dues) == returning + fresh
        assert to_fresh == 0 or to_returning == returning
        assert dues == sorted(dues)
        assert all(due % CENTURY == 0 and clock + due // CENTURY > counted_in for due in dues)

    assert max(granted.values(), default=0) <= limit
