"""One run from start to end: build everything, open, reap, loop, reap, close, publish, report.

Whatever happens ends in a report with an exit code; nothing is raised.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from taskbatch.clock import boot_time
from taskbatch.connect import Link
from taskbatch.errors import REDIS_TROUBLE, ConfigError, ExitCode
from taskbatch.keys import Keys
from taskbatch.logs import Redactor
from taskbatch.publishing import checked_target, publish_all
from taskbatch.queue import RunQueue
from taskbatch.reaper import Reaper
from taskbatch.recount import RedisLostError
from taskbatch.report import Remaining, Report, StopReason, Tally, exit_code
from taskbatch.runner import Runner
from taskbatch.scripts import Scripts
from taskbatch.server import check_server
from taskbatch.sessions import close_runs, describe_run, new_run_id, open_runs, repeated
from taskbatch.survey import Survey, survey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskbatch.declaration import Job
    from taskbatch.metrics.target import PushTarget
    from taskbatch.server import Server
    from taskbatch.settings import PushSettings, RedisSettings, RunSettings
    from taskbatch.signals import Signals

log = logging.getLogger(__name__)

LAST_TIMEOUT = 0.9
"""How long Redis may take for a reply once the run's time is over, in seconds; asked twice at most."""


def run_batch(
    run: RunSettings,
    redis: RedisSettings,
    push: PushSettings,
    jobs: Callable[[], Mapping[str, Job]],
    *,
    signals: Signals,
    on_progress: Callable[[Tally], None] | None = None,
) -> Report:
    """Do one run and report it. `jobs` is called before Redis is touched; `on_progress` about ten times a second."""
    batch = _Batch(run, redis, push, signals, on_progress)
    return batch.go(jobs)


class _Batch:
    def __init__(
        self,
        run: RunSettings,
        redis: RedisSettings,
        push: PushSettings,
        signals: Signals,
        on_progress: Callable[[Tally], None] | None,
    ) -> None:
        self.run = run
        self.redis = redis
        self.push = push
        self.signals = signals
        self.on_progress = on_progress
        self.run_id = new_run_id()
        self.started_at = time.time()
        self.started = time.monotonic()
        self.tally = Tally()
        self.stop: StopReason | None = None
        self.opened: list[RunQueue] = []
        self.remaining: Remaining | None = None
        self.next_due_at: float | None = None
        self.error: str | None = None
        self.target: PushTarget | None = None
        self.pushed: bool | None = None if push.url is None else False
        self.redact = Redactor()
        self.redact.learn(*redis.secrets, *push.secrets)

    def go(self, jobs: Callable[[], Mapping[str, Job]]) -> Report:
        code: int = ExitCode.OK
        try:
            self.target = checked_target(self.push)
            code = self._work(jobs())
        except ConfigError as error:
            code = self._failed(ExitCode.CONFIG, error)
        except (*REDIS_TROUBLE, RedisLostError) as error:
            # Whether something may be held decides: before the lease was taken, nothing was touched.
            code = self._failed(ExitCode.INTERRUPTED if self.opened else ExitCode.UNAVAILABLE, error)
            self.stop = "redis_lost" if self.opened else self.stop
        except Exception as error:
            log.debug("internal error", exc_info=True)
            code = self._failed(ExitCode.INTERNAL, error, f"internal error: {type(error).__name__}: {error}")
        return Report(
            run_id=self.run_id,
            queues=self.run.queues,
            stop_reason=self.stop or "error",
            started_at=self.started_at,
            duration=time.monotonic() - self.started,
            tally=self.tally,
            remaining=self.remaining,
            next_due_at=self.next_due_at,
            pushed=self.pushed,
            error=self.error,
            exit_code=code,
        )

    def _failed(self, code: ExitCode, error: Exception, text: str | None = None) -> ExitCode:
        self.error = " ".join((text or str(error)).split())
        self.stop = self.stop or "error"
        return code

    def _work(self, jobs: Mapping[str, Job]) -> int:
        link = Link(self.redis if self.run.max_runtime is None else self._hurried(self.run.max_runtime))
        try:
            link.connect()
            server = repeated(link, lambda: check_server(link))
            scripts = Scripts(link)
            queues = [RunQueue(Keys(self.run.prefix, name), self.run_id) for name in self.run.queues]
            lease_until = boot_time() + self.run.lease
            info = describe_run(self.run_id, self.started_at)
            self.opened = open_runs(scripts, queues, self.run, info)
            if not self.opened:
                self.stop, self.pushed = "overlap", None
                self._look_around(link)
                return self._code()
            return self._run(scripts, jobs, lease_until, self._reapers(scripts, server))
        finally:
            link.close()

    def _hurried(self, max_runtime: float) -> RedisSettings:
        """Return how to reach Redis within a short budget: one that never answers is asked twice at most."""
        return replace(self.redis, timeout=min(self.redis.timeout, max(LAST_TIMEOUT, max_runtime / 2)))

    def _run(self, scripts: Scripts, jobs: Mapping[str, Job], lease_until: float, reapers: list[Reaper]) -> int:
        runner = Runner(
            self.run,
            self.opened,
            scripts,
            reapers,
            jobs,
            tally=self.tally,
            signals=self.signals,
            started=self.started,
            lease_until=lease_until,
            on_progress=self.on_progress,
            redact=self.redact,
        )
        self._reap(reapers)
        self.stop = runner.run()
        if self.stop == "redis_lost":
            self.error = "Redis did not come back; what this run held is left to the reaper"
            return ExitCode.INTERRUPTED
        if self.stop in {"signal", "max_runtime"}:
            # Time is up: what is left to do must not wait long for a Redis that hangs.
            scripts.link.timeout = min(scripts.link.timeout, LAST_TIMEOUT)
        self._reap(reapers)
        found = self._look_around(scripts.link)
        code = self._code()
        close_runs(
            scripts,
            self.opened,
            self.tally,
            stop_reason=self.stop,
            code=code,
            started_at=self.started_at,
            duration=time.monotonic() - self.started,
            clear=runner.clear,
        )
        self.pushed = publish_all(scripts, [one.queue for one in found], self.run.prefix, self.push, self.target)
        return code

    def _reapers(self, scripts: Scripts, server: Server) -> list[Reaper]:
        if not server.may_be_reaped(self.run.lease, embedded=self.redis.embedded):
            log.debug("Redis is up for %.0f s, less than one lease: nothing is reaped", server.uptime)
            return []
        return [Reaper(scripts, queue, self.run.lease) for queue in self.opened]

    def _reap(self, reapers: list[Reaper]) -> None:
        until = None if self.run.max_runtime is None else self.started + self.run.max_runtime
        for reaper in reapers:
            reaped = repeated(reaper.scripts.link, partial(reaper.look, until=until))
            self.tally.take_reaped(reaped.moved, reaped.dead)

    def _look_around(self, link: Link) -> list[Survey]:
        found = [repeated(link, partial(survey, link, Keys(self.run.prefix, name))) for name in self.run.queues]
        self.remaining = sum((one.remaining for one in found), Remaining())
        due = [one.next_due_ms / 1000 for one in found if one.next_due_ms is not None]
        self.next_due_at = min(due, default=None)
        return found

    def _code(self) -> int:
        return exit_code(
            self.tally,
            self.stop or "empty",
            fail_on=self.run.fail_on,
            remaining=self.remaining,
            remaining_exit_code=self.run.remaining_exit_code,
        )
