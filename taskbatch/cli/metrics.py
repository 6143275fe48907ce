"""`taskbatch metrics`: print what would be pushed, or push it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from taskbatch.cli.failure import FailedError
from taskbatch.cli.known import named_or_known
from taskbatch.cli.options import push_options, queues
from taskbatch.cli.verb import Verb, examples

if TYPE_CHECKING:
    from taskbatch.cli.session import Session
    from taskbatch.connect import Link
    from taskbatch.keys import Keys


@click.command(
    "metrics",
    cls=Verb,
    epilog=examples(
        "taskbatch metrics",
        "taskbatch metrics --push --pushgateway http://localhost:9091",
    ),
)
@queues("Only these; repeatable.")
@click.option("--push", "is_push", is_flag=True, help="Push to --pushgateway and write --textfile instead of printing.")
@push_options()
@click.pass_obj
def command(session: Session, /, *, queues: tuple[str, ...], is_push: bool, **push: Any) -> None:  # noqa: ANN401 - push_options
    """Print the metrics of all queues, or of those named, in Prometheus' text format."""
    for queue in queues:
        session.keys(queue)
    with session.link() as link:
        found = named_or_known(session, link, queues)
        if is_push:
            _push(session, link, found, push)
        else:
            click.echo(_text(link, found), nl=False)


def _text(link: Link, queues: list[Keys]) -> str:
    from taskbatch import __version__  # noqa: PLC0415 - here and below: what is costly comes last
    from taskbatch.metrics.render import render  # noqa: PLC0415
    from taskbatch.survey import survey, to_snapshot  # noqa: PLC0415

    return render([to_snapshot(survey(link, keys), __version__) for keys in queues]).decode()


def _push(session: Session, link: Link, queues: list[Keys], options: dict[str, Any]) -> None:
    from taskbatch.publishing import checked_target, publish_all  # noqa: PLC0415 - as above
    from taskbatch.scripts import Scripts  # noqa: PLC0415

    push = session.push_settings(*(options[name] for name in PUSH))
    if push.url is None and push.textfile is None:
        raise click.UsageError("--push needs --pushgateway or --textfile")
    target = checked_target(push)
    names = [keys.queue for keys in queues]
    if publish_all(Scripts(link), names, session.prefix, push, target) is False:
        raise FailedError("not all metrics were pushed")


PUSH = ("pushgateway", "pushgateway_ca_file", "push_timeout", "textfile")
"""Options of `push_options`, as `push_settings` takes them."""
