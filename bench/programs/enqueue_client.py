"""Enqueue N tasks with `Client.enqueue_many`. Prints the seconds without imports."""

import sys
import time

from taskbatch import Client

url, count, payload = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
with Client(url) as client:
    client.enqueue("bench.noop", payload, content_type="application/json")
    begun = time.perf_counter()
    client.enqueue_many((payload for _ in range(count - 1)), "bench.noop", content_type="application/json")
    print(time.perf_counter() - begun)
