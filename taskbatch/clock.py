"""Clocks of this machine. Leases, limits and due times are Redis' business; these only measure spans."""

from __future__ import annotations

import time

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_time() -> float:
    """Return seconds since boot, time asleep included: a paused machine must not think its lease is still good."""
    return time.clock_gettime(_BOOT)
