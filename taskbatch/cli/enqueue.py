"""`taskbatch enqueue`: a producer for shells."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import click

from taskbatch.cli.failure import FailedError, PartlyError
from taskbatch.cli.options import option, queue
from taskbatch.cli.types import Count, Duration, Given
from taskbatch.cli.verb import Verb, examples
from taskbatch.errors import ConfigError, TaskbatchError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskbatch.cli.session import Session
    from taskbatch.client import Client

STDIN = "-"
MAX_LINE = 2 * 1024 * 1024
"""Most bytes of a payload that are read: more than a task may have, so that the client says what is wrong."""


@click.command(
    "enqueue",
    cls=Verb,
    epilog=examples(
        'taskbatch enqueue email.send \'{"to": "a@example.org"}\' --queue mail',
        'taskbatch enqueue report.daily --unique-key "daily-$(date +%F)" --delay 1h',
        "taskbatch enqueue image.resize --file photo.jpg --raw",
        "generate-orders | taskbatch enqueue order.import -",
    ),
)
@click.argument("type_", metavar="TYPE")
@click.argument("payload", metavar="[JSON]", required=False)
@click.option("--file", "file", metavar="PATH", type=click.File("rb"), help="Read the payload from a file.")
@click.option("--raw", is_flag=True, help="The file is bytes, not JSON.")
@queue()
@option("--delay", type=Duration(), default="0s", help="When it may be claimed, from now.")
@option("--expires", type=Duration(), show_default="never", help="After this time it is a dead letter instead.")
@click.option("--unique-key", metavar="KEY", type=Given("text"), help="Enqueue only if no task with this key is there.")
@click.option(
    "--limit-key", metavar="KEY", default="", show_default=False, help="Whose share of the rate limit it takes."
)
@option("--max-attempts", type=Count(1), show_default="the job's", help="How often it may fail.")
@click.option("--header", "headers", metavar="NAME=VALUE", multiple=True, help="For tracing; repeatable.")
@click.option("--strict", is_flag=True, help="Exit 1 if a task with that --unique-key is there already.")
@click.pass_obj
def command(
    session: Session,
    /,
    type_: str,
    payload: str | None,
    *,
    file: BinaryIO | None,
    raw: bool,
    headers: tuple[str, ...],
    strict: bool,
    **options: Any,  # noqa: ANN401 - those that the client knows
) -> None:
    """Enqueue one task, or with "-" one for each line of JSON on stdin; print the ids."""
    options |= {"headers": dict(map(_header, headers)), "max_attempts": options["max_attempts"] or 0}
    if payload is not None and file is not None:
        raise click.UsageError("a payload and --file; give one of them")
    if raw and file is None:
        raise click.UsageError("--raw needs --file")
    if payload == STDIN and sys.stdin is None:
        raise click.UsageError("stdin is closed")
    if payload == STDIN and options["unique_key"] is not None:
        raise click.UsageError("--unique-key is for one task, not for those on stdin")
    if not raw:
        options["content_type"] = "application/json"
    content = b"" if payload == STDIN else _content(payload, file, raw=raw)
    _check(session, type_, options)
    with session.redis() as redis:
        # Here, because redis-py costs 100 ms, and a wrong option should not.
        from taskbatch.client import Client  # noqa: PLC0415

        with Client(redis, prefix=session.prefix) as client:
            if payload == STDIN:
                _enqueue_lines(session, client, type_, options)
            else:
                _enqueue_one(session, client, type_, content, options, strict=strict)


def _check(session: Session, type_: str, options: dict[str, Any]) -> None:
    """Raise UsageError for a field that cannot be: from the server, ConfigError means something else."""
    from taskbatch.message import Item  # noqa: PLC0415 - protobuf costs 20 ms, and --help should not

    session.keys(options["queue"])
    try:
        Item(type_, **options)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error


def _enqueue_one(
    session: Session, client: Client, type_: str, content: bytes, options: dict[str, Any], *, strict: bool
) -> None:
    done = client.enqueue(type_, content, **options)
    if not session.quiet:
        click.echo(done.id)
    if done.duplicate and strict:
        raise FailedError(f"task {done.id} holds this unique key")


def _enqueue_lines(session: Session, client: Client, type_: str, options: dict[str, Any]) -> None:
    """Enqueue the lines of stdin as they come; if not all could be, the error says how many were."""
    from taskbatch.client import EnqueueError  # noqa: PLC0415 - as above

    del options["unique_key"]
    count = 0
    try:
        for done in client.enqueue_stream(_lines(sys.stdin.buffer), type_, **options):
            count += 1
            if not session.quiet:
                click.echo(done.id)
    except EnqueueError as error:
        # It knows of its last chunk only.
        text = f"{error.problem}; {count + len(error.enqueued)} tasks were enqueued"
        if error.unknown:
            text += f", of the next {len(error.unknown)} it is not known"
        raise PartlyError(text, error.problem) from error
    except KeyboardInterrupt as error:
        raise PartlyError(
            f"interrupted; {count} tasks were enqueued, of the next ones it is not known", error
        ) from error
    except (click.UsageError, TaskbatchError) as error:
        problem = error.message if isinstance(error, click.UsageError) else error
        raise PartlyError(f"{problem}; {count} tasks were enqueued", error) from error


def _lines(stdin: BinaryIO) -> Iterator[bytes]:
    """Yield the payloads, one a line; empty lines are none. UsageError names the line that is not JSON."""
    number = 0
    while line := stdin.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise click.UsageError(f"line {number} is longer than {MAX_LINE} bytes")
        if content := line.strip():
            _check_json(content, f"line {number}")
            yield content


def _content(payload: str | None, file: BinaryIO | None, *, raw: bool) -> bytes:
    if file is not None:
        content = file.read(MAX_LINE + 1)
        where = f"--file {getattr(file, 'name', '-')}"
    elif payload is not None:
        content, where = payload.encode("utf-8", "surrogateescape"), "the payload"
    else:
        return b""
    if not raw:
        content = content.strip()
        _check_json(content, where)
    return content


def _check_json(content: bytes, where: str) -> None:
    """Raise UsageError, with the position, unless `content` is JSON in UTF-8. The bytes go out as they are."""
    try:
        json.loads(content.decode(), parse_constant=_no_constant, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{where} is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        at = f"line {error.lineno} column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise click.UsageError(f"{where} is not JSON: {error.msg} at {at}") from None
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{where} is not JSON: {error}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a value that JSON knows")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.UsageError(f"--header {text[:60]!r}: write NAME=VALUE")
    return name, value
