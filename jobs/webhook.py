"""`webhook.post`: send a JSON body to an HTTP endpoint.

At least once: the receiver may get the same request twice. Both carry the same `Idempotency-Key`, the
task's id, so it can answer the second without doing anything. An endpoint that ignores the key must
stand repeats by itself.

At most ten a second to each tenant: enqueue with the tenant (or the host) as `limit_key`.

    taskbatch enqueue webhook.post '{"url": "https://a.example/hook", "body": {"order": 7}}' --limit-key a

Whoever may enqueue chooses the URL. If that is not only you, check the host against a list of your own.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from taskbatch import RateLimit, Task, job

REQUEST_TIMEOUT = 10.0


@dataclass(frozen=True)
class Webhook:
    """What to send where; `body` is sent as JSON."""

    url: str
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.url.startswith(("https://", "http://")):
            msg = "url must be http:// or https://"
            raise ValueError(msg)  # a payload that can never work: dead at once, without retries


@job("webhook.post", timeout=30, max_attempts=8, rate_limit=RateLimit("10/1s", algorithm="gcra"))
def post(hook: Webhook, task: Task) -> None:
    """POST the body; any answer but 2xx raises, so that the task is tried again with growing delays."""
    from urllib.request import HTTPRedirectHandler, Request, build_opener  # noqa: PLC0415 - see jobs/__init__.py

    class NoRedirects(HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:  # urllib would go on with a GET and without the body
            return None

    # A foreign producer may leave the id empty: then the same payload is the same request.
    key = task.id or hashlib.sha256(task.payload).hexdigest()
    headers = {"Content-Type": "application/json", **hook.headers, "Idempotency-Key": key}
    request = Request(hook.url, json.dumps(hook.body).encode(), headers)  # noqa: S310 - checked above
    with build_opener(NoRedirects).open(request, timeout=REQUEST_TIMEOUT) as answer:
        answer.read(1024)
