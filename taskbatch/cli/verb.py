"""A verb: a command that also takes the global options, since people write them on either side of it."""

from __future__ import annotations

from typing import Any

import click

from taskbatch.cli.options import variable
from taskbatch.cli.session import DEFAULT_URL, Session
from taskbatch.cli.types import Given, Listed

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 100}

GLOBAL = "Global options, as in `taskbatch --help`, may stand here, too."


def global_options(*, hidden: bool) -> list[click.Parameter]:
    """Return new options that set the session. The `hidden` ones, of verbs, leave variables to the others."""

    def one(*names: str, **settings: Any) -> click.Option:  # noqa: ANN401 - click's
        name = next(name for name in names if name.startswith("--"))
        # These variables may name a file, too, which click knows nothing of.
        by_click = not hidden and name not in {"--redis-url", "--redis-user"}
        return click.Option(
            list(names),
            envvar=variable(name) if by_click else None,
            show_envvar=by_click,
            expose_value=False,
            hidden=hidden,
            callback=_keep,
            **settings,
        )

    path = Given("path")
    return [
        one("--redis-url", metavar="URL", type=Given("url"), show_default=DEFAULT_URL,
            help="redis, rediss, unix, valkey, valkeys, or embedded: for a server of its own. "
            "[env var: TASKBATCH_REDIS_URL, REDIS_URL]"),
        one("--redis-user", metavar="NAME", type=Given("name"),
            help="Its password comes from TASKBATCH_REDIS_PASSWORD or the file TASKBATCH_REDIS_PASSWORD_FILE. "
            "[env var: TASKBATCH_REDIS_USER]"),
        one("--redis-ca-file", metavar="PATH", type=path, help="Whom to trust for rediss."),
        one("--redis-cert-file", metavar="PATH", type=path, help="Client certificate."),
        one("--redis-key-file", metavar="PATH", type=path, help="Key of the client certificate."),
        one("--prefix", type=Given("text"), show_default="taskbatch", help="How the keys in Redis begin."),
        one("--jobs", metavar="MODULE-or-PATH", type=Listed("module"), multiple=True, show_default="jobs",
            help="Where the jobs are; repeatable."),
        one("--log-format", type=click.Choice(["auto", "text", "json"]), show_default="auto",
            help="How to log to stderr; auto: text on a terminal, else one JSON object a line."),
        one("-v", "--verbose", count=True, default=None, show_default=False, help="Log more; twice: of others, too."),
        one("--quiet", is_flag=True, default=None, show_default=False, help="Print nothing on success."),
    ]  # fmt: skip


def examples(*lines: str) -> str:
    """Return the end of a help text: command lines to copy."""
    return "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in lines)])


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:  # noqa: ANN401 - click's
    session = ctx.find_object(Session)
    if session is None or not param.name or not value:
        return
    if param.name == "verbose":
        session.verbose += value
    else:
        setattr(session, param.name, value)


class Verb(click.Command):
    """Reads the global options as well, starts logging, and hands the session to the function."""

    def __init__(self, *args: Any, **settings: Any) -> None:  # noqa: ANN401 - click's
        settings["context_settings"] = {**SETTINGS, **settings.get("context_settings", {})}
        settings["epilog"] = "\n\n".join(filter(None, [settings.get("epilog"), GLOBAL]))
        super().__init__(*args, **settings)
        self.params += global_options(hidden=True)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's
        """Call the function of the verb; what it returns is the exit code, None is 0."""
        session = ctx.find_object(Session)
        if session is not None:
            session.start_logging()
        return super().invoke(ctx)


class VerbGroup(click.Group):
    """Verbs of a kind, as in `dead list`."""

    command_class = Verb

    def __init__(self, *args: Any, **settings: Any) -> None:  # noqa: ANN401 - click's
        settings["context_settings"] = {**SETTINGS, **settings.get("context_settings", {})}
        settings.setdefault("subcommand_metavar", "VERB [ARGS]...")
        settings.setdefault("params", global_options(hidden=True))
        super().__init__(*args, **settings)
