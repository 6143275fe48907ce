"""The least that a run on an empty queue could be, with redis-py: one LMOVE."""

import sys

import redis

client = redis.Redis.from_url(sys.argv[1])
client.lmove("taskbatch:{default}:pending", "taskbatch:{default}:processing", "RIGHT", "LEFT")
client.close()
