"""Enqueue N tasks by hand: protobuf, and LPUSH in pipelines of 1,000. Prints the seconds without imports."""

import sys
import time
import uuid

import redis

from taskbatch.v1.task_pb2 import Task

url, count, payload = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
client = redis.Redis.from_url(url)
client.ping()
begun = time.perf_counter()
for start in range(0, count, 1000):
    pipeline = client.pipeline(transaction=False)
    for _ in range(start, min(count, start + 1000)):
        task = Task(id=uuid.uuid4().hex, type="bench.noop", payload=payload, enqueued_at_ms=int(time.time() * 1000))
        pipeline.lpush("taskbatch:{default}:pending", task.SerializeToString())
    pipeline.execute()
print(time.perf_counter() - begun)
