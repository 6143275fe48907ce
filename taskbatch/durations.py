"""Durations as people write them: `500ms`, `30s`, `5m`, `1h`, `1d`."""

from __future__ import annotations

import math
import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")


def parse_duration(text: str) -> float:
    """Return the seconds `text` means; `0` needs no unit. Raises ValueError, whose message names the text."""
    stripped = text.strip()
    if stripped == "0":
        return 0.0
    match = _DURATION.fullmatch(stripped)
    if match is None:
        hint = " (a unit is missing)" if re.fullmatch(r"[0-9.]+", stripped) else ""
        msg = f"not a duration: {text[:40]!r}{hint}; write 500ms, 30s, 5m, 1h or 1d"
        raise ValueError(msg)
    number, unit = match.groups()
    seconds = float(number) * _UNITS[unit]
    if not math.isfinite(seconds):
        msg = f"duration too long: {text[:40]!r}"
        raise ValueError(msg)
    # 0.001 is not exact in binary: 1100ms must be 1.1, not 1.1000000000000001.
    return round(seconds, 6)
