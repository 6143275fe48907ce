"""rate_limit_gcra: smooth, with a burst; in any interval W at most burst + W / interval are granted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.exceptions import ResponseError

from tests.lua.keyspace import Near

if TYPE_CHECKING:
    from tests.lua.world import World

STATE = "taskbatch:limit:{email.send}:tenant"


def acquire(
    world: World, *, limit: int = 10, period: int = 1000, returning: int = 0, fresh: int = 0, burst: int = 3
) -> list[int]:
    """Return [now, granted to returning, granted to new, due times…]; by default one each 100 ms."""
    answer: list[int] = world.call("rate_limit_gcra", [STATE], [limit, period, returning, fresh, burst])
    return answer


def time_passes(world: World, ms: float) -> None:
    """Let time pass: the state only knows how far away its times are."""
    for field, value in world.admin.hgetall(STATE).items():
        world.admin.hset(STATE, field, f"{float(value) - ms * 1000:.3f}")


def test_a_burst_starts_at_once_and_the_next_are_spaced(world: World) -> None:
    now, *answer = acquire(world, fresh=5)

    assert answer == [0, 3, Near(now + 100, 1), Near(now + 200, 1)]
    micros = now * 1000
    assert world.dump() == {
        STATE + " +ttl": {"tat": Near(micros + 300_000, 1000), "next": Near(micros + 300_000, 1000)}
    }


def test_later_denials_are_booked_behind_earlier_ones(world: World) -> None:
    now, *_ = acquire(world, fresh=5)

    assert acquire(world, fresh=1)[1:] == [0, 0, Near(now + 300, 1)]


def test_newcomers_stay_behind_who_is_booked(world: World) -> None:
    acquire(world, fresh=5)
    time_passes(world, 250)

    assert acquire(world, fresh=1)[1:3] == [0, 0]
    assert acquire(world, returning=2)[1:3] == [2, 0]


def test_newcomers_are_served_again_when_all_bookings_are_over(world: World) -> None:
    acquire(world, fresh=5)
    time_passes(world, 350)

    assert acquire(world, fresh=1)[1:3] == [0, 1]


def test_returning_tasks_go_first(world: World) -> None:
    assert acquire(world, returning=2, fresh=2)[1:3] == [2, 1]


def test_who_comes_back_too_early_is_booked_again(world: World) -> None:
    now, *_ = acquire(world, fresh=4)

    assert acquire(world, returning=1)[1:] == [0, 0, Near(now + 200, 1)]


def test_a_pause_gives_back_no_more_than_the_burst(world: World) -> None:
    acquire(world, fresh=3)
    time_passes(world, 3_600_000)

    assert acquire(world, fresh=10)[2] == 3


def test_without_a_burst_one_starts_at_a_time(world: World) -> None:
    now, *answer = acquire(world, fresh=3, burst=1)

    assert answer == [0, 1, Near(now + 100, 1), Near(now + 200, 1)]


def test_the_state_is_gone_when_nobody_needs_it(world: World) -> None:
    acquire(world, fresh=5)

    assert 1000 < world.admin.pttl(STATE) <= 1300


def test_a_key_of_another_type_is_not_touched(world: World) -> None:
    world.break_type(STATE)

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        acquire(world, fresh=1)

    assert world.dump() == {STATE: {"foreign"}}


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    limit=st.integers(1, 50),
    period=st.integers(100, 3_600_000),
    burst=st.integers(1, 20),
    steps=st.lists(st.tuples(st.floats(0, 3), st.integers(0, 5), st.integers(0, 30)), min_size=1, max_size=20),
)
def test_no_interval_grants_more_than_burst_and_rate(
    world: World, limit: int, period: int, burst: int, steps: list[tuple[float, int, int]]
) -> None:
    world.admin.delete(STATE)
    interval = period / limit
    passed = 0.0
    grants: list[tuple[float, int]] = []

    for intervals, returning, fresh in steps:
        time_passes(world, intervals * interval)
        passed += intervals * interval
        now, to_returning, to_fresh, *dues = acquire(
            world, limit=limit, period=period, returning=returning, fresh=fresh, burst=burst
        )
        grants.append((now + passed, to_returning + to_fresh))

        assert to_returning + to_fresh + len(dues) == returning + fresh
        assert to_fresh == 0 or to_returning == returning
        assert dues == sorted(dues)
        assert all(due >= now for due in dues)

    for i, (start, _) in enumerate(grants):
        total = 0
        for end, granted in grants[i:]:
            total += granted
            # The reply's time is in whole milliseconds: the real interval may be one longer.
            assert total <= burst + (end - start + 1) / interval + 0.001
