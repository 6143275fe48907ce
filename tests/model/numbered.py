"""Ids and nonces that are the same each time an example runs: with random ones it could not be made small."""

from __future__ import annotations

import itertools


class Numbered:
    """Stands for `secrets.token_hex`; `again()` begins anew."""

    def __init__(self) -> None:
        self.again()

    def again(self) -> None:
        self._numbers = itertools.count(1)

    def __call__(self, size: int | None = None) -> str:
        return f"{next(self._numbers):0{2 * (size or 16)}x}"
