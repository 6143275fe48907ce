"""What the benchmarks read from INFO."""

from __future__ import annotations

from bench.wire import Wire, read


def test_info_becomes_numbers_without_the_asking_itself() -> None:
    found = read(
        {"cmdstat_lmove": {"calls": 3, "usec": 7}, "cmdstat_info": {"calls": 9, "usec": 90}},
        {"total_net_input_bytes": 100, "total_net_output_bytes": 20},
        {"used_cpu_sys": 0.5, "used_cpu_user": 0.25},
    )

    assert found == Wire(calls={"lmove": 3}, microseconds={"lmove": 7}, received=100, sent=20, cpu=0.75)


def test_only_what_came_in_between_counts() -> None:
    before = Wire({"lmove": 3, "lrem": 3}, {"lmove": 7, "lrem": 5}, 100, 20, 0.5)
    after = Wire({"lmove": 5, "lrem": 3, "evalsha": 1}, {"lmove": 11, "lrem": 5, "evalsha": 40}, 180, 30, 1.0)

    used = after.since(before)

    assert used == Wire({"lmove": 2, "evalsha": 1}, {"lmove": 4, "evalsha": 40}, 80, 10, 0.5)
    assert (used.commands, used.bytes) == (3, 90)
