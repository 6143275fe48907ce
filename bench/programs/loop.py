"""What one writes first: LMOVE, run, LREM, until nothing comes; one task at a time, or N with a thread pool.

`loop.py URL` or `loop.py URL N`.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import redis

from taskbatch.v1.task_pb2 import Task

PENDING, HELD = "taskbatch:{default}:pending", "taskbatch:{default}:processing"


def noop(payload: dict) -> None:
    """Do nothing."""


def rest(payload: dict) -> None:
    """Rest as long as the payload says."""
    time.sleep(payload["seconds"])


JOBS = {"bench.noop": noop, "bench.rest": rest}


def work(client: redis.Redis, raw: bytes) -> None:
    """Run one task and acknowledge it."""
    task = Task.FromString(raw)
    JOBS[task.type](json.loads(task.payload))
    client.lrem(HELD, -1, raw)


def main() -> None:
    """Work until the queue is empty."""
    client = redis.Redis.from_url(sys.argv[1])
    threads = int("".join(sys.argv[2:3]) or 0)
    if not threads:
        while (raw := client.lmove(PENDING, HELD, "RIGHT", "LEFT")) is not None:
            work(client, raw)
        return
    with ThreadPoolExecutor(threads) as pool:
        while (raw := client.lmove(PENDING, HELD, "RIGHT", "LEFT")) is not None:
            pool.submit(work, client, raw)


main()
