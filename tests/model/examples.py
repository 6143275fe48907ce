"""How long the machines run: the same few hundred examples each time, or as many as they are told to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.stateful import RuleBasedStateMachine

EXAMPLES = "TASKBATCH_MODEL_EXAMPLES"
SEED = "TASKBATCH_MODEL_SEED"


def explore(make: Callable[[], RuleBasedStateMachine], usual: int, steps: int) -> None:
    """Run `usual` examples of at most `steps` steps each, or $TASKBATCH_MODEL_EXAMPLES from $TASKBATCH_MODEL_SEED."""
    count = int(os.environ.get(EXAMPLES) or usual)
    start = int(os.environ.get(SEED) or 1)
    print(f"{count} examples, {SEED}={start}")  # noqa: T201 - shown when it fails

    def factory() -> RuleBasedStateMachine:
        return make()

    run_state_machine_as_test(
        seed(start)(factory),
        settings=settings(
            max_examples=count,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            # One failure, made small: explaining it and looking for others takes minutes.
            phases=[Phase.generate, Phase.shrink],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
