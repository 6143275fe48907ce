"""Every metric family: name, type, labels, meaning. Frozen.

A gateway that has seen a name with another type or help refuses it, and with it other programs' pushes:
a change of meaning gets a new name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class Family:
    """A metric as Prometheus sees it, with its full name; `labels` are in the order samples give them."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ("queue",)


TASKS = Family(
    "taskbatch_tasks_total",
    "counter",
    "Tasks settled, by job type and by what was decided about them.",
    ("queue", "type", "outcome"),
)
CLAIMED = Family("taskbatch_claimed_total", "counter", "Tasks claimed by runs.")
REAPED = Family(
    "taskbatch_reaped_total",
    "counter",
    "Tasks taken from runs that died, by where they went.",
    ("queue", "action"),
)
RUNS = Family("taskbatch_runs_total", "counter", "Runs ended, by how they ended.", ("queue", "result"))
DURATION = Family(
    "taskbatch_task_duration_seconds",
    "histogram",
    "How long jobs ran, each attempt counted once.",
    ("queue", "type"),
)
LATENCY = Family(
    "taskbatch_queue_latency_seconds",
    "histogram",
    "Time from enqueue to the claim of a first attempt.",
)
QUEUE_TASKS = Family(
    "taskbatch_queue_tasks",
    "gauge",
    "Tasks in the queue, by where they are.",
    ("queue", "state"),
)
PAUSED = Family("taskbatch_queue_paused", "gauge", "1 while the queue is paused, else 0.")
OLDEST_PENDING = Family(
    "taskbatch_oldest_pending_timestamp_seconds",
    "gauge",
    "When the pending task that is next was enqueued; absent without one.",
)
LAST_RUN = Family("taskbatch_last_run_timestamp_seconds", "gauge", "When the last run ended.")
LAST_SUCCESS = Family(
    "taskbatch_last_success_timestamp_seconds",
    "gauge",
    "When the last run without an infrastructure error ended.",
)
LAST_DURATION = Family("taskbatch_last_run_duration_seconds", "gauge", "How long the last run took.")
BUILD_INFO = Family(
    "taskbatch_build_info",
    "gauge",
    "Always 1; the version of the run that published last.",
    ("queue", "version"),
)

FAMILIES = (
    TASKS,
    CLAIMED,
    REAPED,
    RUNS,
    DURATION,
    LATENCY,
    QUEUE_TASKS,
    PAUSED,
    OLDEST_PENDING,
    LAST_RUN,
    LAST_SUCCESS,
    LAST_DURATION,
    BUILD_INFO,
)

OUTCOMES = ("succeeded", "retried", "released", "dead", "expired")
ACTIONS = ("recovered", "suspects", "dead")
RESULTS = ("success", "interrupted", "error", "crashed")
STATES = ("pending", "recovered", "suspects", "processing", "scheduled", "dead")
