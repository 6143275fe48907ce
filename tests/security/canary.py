"""A password that no output may hold, in no form; and all that is in Redis, as bytes."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from pathlib import Path

    import redis

    from tests.program import Cli, Result

MARK = "cAn4ryQ7x"
"""The part of each secret that looks the same however it is encoded."""

PASSWORD = f"p@ss/'\"{MARK}+w\u00f6\\r d"
ENCODED = quote(PASSWORD, safe="")
USER = "us3r"
TOKEN = f"t0k3n-{MARK}"
BASIC = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

LOUD = [["-v", "-v", "--log-format", "text"], ["-v", "-v", "--log-format", "json"], []]


def check(*texts: str) -> None:
    """No text may hold the canary, nor as much of it as would help to guess the rest."""
    for text in texts:
        for form in (MARK, MARK[:6], BASIC, BASIC[4:-4]):
            assert form not in text, text[max(0, text.find(form) - 300) :][:700]


def quiet_about_it(cli: Cli, *arguments: str, code: int, says: str = "", env: dict[str, str] | None = None) -> Result:
    """Run the program as loud as it gets, in both log formats: it ends with `code`, `says` why, and that is all."""
    results = [cli(*arguments, *loud, env=env) for loud in LOUD]
    for result in results:
        check(result.stdout, result.stderr)
        assert result.returncode == code, result.stderr
        assert says in result.stderr + result.stdout
    return results[-1]


def everything(client: redis.Redis) -> str:
    """Return all keys and all values."""
    found: list[object] = []
    for key in client.keys("*"):
        found.append(key)
        match client.type(key):
            case b"list":
                found += client.lrange(key, 0, -1)
            case b"hash":
                found += [part for pair in client.hgetall(key).items() for part in pair]
            case b"zset":
                found += client.zrange(key, 0, -1)
            case b"set":
                found += client.smembers(key)
            case b"stream":
                found += [part for _, fields in client.xrange(key) for pair in fields.items() for part in pair]
            case _:
                found.append(client.get(key))
    return "\n".join(part.decode("utf-8", "replace") if isinstance(part, bytes) else str(part) for part in found)


def secret_file(directory: Path, text: str) -> str:
    """Return the path of a file that holds a secret, as a container's secrets are given."""
    path = directory / f"secret-{len(list(directory.iterdir()))}"
    path.write_text(f"{text}\n")
    return str(path)
