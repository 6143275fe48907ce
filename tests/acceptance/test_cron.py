"""Debian's cron, really: it starts the program, the program does its work and says nothing.

Root can run a cron that nobody else sees: in a mount namespace of its own, with a crontab, a spool, a
directory for its pid and a `sendmail` that belong to the test.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.ending import once, with_jobs
from tests.daemon import Daemon, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.program import Cli
    from tests.servers import Server

ROOT = Path(__file__).parents[2]

START = """
mount --bind spool /var/spool/cron/crontabs
mount --bind empty /etc/cron.d
mount --bind /dev/null /etc/crontab
mount --bind run /run
mount --bind sbin /usr/sbin
exec /usr/sbin/cron -f
"""


class Cron:
    """A cron daemon that knows one crontab; `mail` is what it has sent."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("spool", "empty", "run", "sbin"):
            (directory / name).mkdir()
        # All that is left of /usr/sbin: cron itself, and the sendmail it pipes output into.
        shutil.copy("/usr/sbin/cron", directory / "sbin")
        sendmail = directory / "sbin" / "sendmail"
        sendmail.write_text(f"#!/bin/sh\nexec cat >>'{directory}/mail'\n")
        sendmail.chmod(0o755)
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", START]
        self.daemon = Daemon(command, directory, (directory / "run" / "crond.pid").exists)

    def start(self, crontab: str) -> None:
        path = self.directory / "spool" / "root"
        path.write_text(crontab)
        path.chmod(0o600)
        self.daemon.start()

    @property
    def mail(self) -> str:
        path = self.directory / "mail"
        return path.read_text() if path.exists() else ""

    @property
    def idle(self) -> bool:
        """Whether everything that it has started is over."""
        children = Path(f"/proc/{self.daemon.pid}/task/{self.daemon.pid}/children")
        return not children.read_text().strip()


@pytest.fixture
def cron(tmp_path: Path) -> Iterator[Cron]:
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("only root, where it may make a mount namespace, can start a cron of its own")
    if not Path("/usr/sbin/cron").exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)("cron is not installed: apt-get install cron")
    cron = Cron(tmp_path)
    yield cron
    cron.daemon.stop()


@pytest.fixture
def here(cli: Cli, server: Server) -> Cli:
    return with_jobs(cli, server.url)


def line_of(text: str, cli: Cli, server: Server) -> str:
    """Return a line of ours as an administrator would adapt it: where the jobs are, where Redis is, which program."""
    line = text.replace("redis://redis:6379/0", server.url)
    line = re.sub(r"cd /srv/\w+", f"cd {cli.cwd}", line)
    return re.sub(r"(?<= )taskbatch (?=--quiet|run)", f"{' '.join(cli.command)} ", line)


def readme_line() -> str:
    (line,) = re.findall(r"^```crontab\n(.*)\n```$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert line.startswith("* * * * *  ")
    return str(line)


def crontab_line() -> str:
    (line,) = re.findall(r"^\* \* \* \* \* .*", (ROOT / "cron" / "crontab").read_text(), re.MULTILINE)
    return str(line)


def succeeded(server: Server, queue: str = "default") -> int:
    return int(server.client().hget(f"taskbatch:{{{queue}}}:totals", "tasks:succeeded:ok") or 0)


@once
def test_a_run_of_cron_executes_tasks_and_says_nothing(cron: Cron, here: Cli, server: Server) -> None:
    """Our two crontabs, but for the minute: at the start of cron, which is no wait."""
    here("enqueue", "ok")
    here("enqueue", "ok", "-q", "mail")
    first = line_of(readme_line(), here, server)
    second = line_of(crontab_line(), here, server) + " --queue mail"

    cron.start("\n".join([
        f"TASKBATCH_REDIS_URL={server.url}",
        "MAILTO=root",
        first.replace("* * * * *", "@reboot"),
        second.replace("* * * * *", "@reboot"),
        "",
    ]))  # fmt: skip

    wait_until(lambda: succeeded(server) + succeeded(server, "mail") == 2, seconds=20, what="the runs")
    wait_until(lambda: cron.idle, seconds=20, what="their end")
    assert cron.mail == ""


@once
def test_a_run_that_fails_is_mailed(cron: Cron, here: Cli, server: Server) -> None:
    here("enqueue", "bad")
    line = line_of(readme_line(), here, server).replace("* * * * *", "@reboot")

    cron.start(f"MAILTO=root\n{line} --fail-on dead\n")

    wait_until(lambda: "\n\n" in cron.mail and cron.idle, seconds=20, what="the mail")
    assert "1 dead" in cron.mail
    assert "ValueError: no good" in cron.mail
    assert "Traceback" not in cron.mail


@once
@pytest.mark.slow
def test_every_minute(cron: Cron, here: Cli, server: Server) -> None:
    here("enqueue", "ok")

    cron.start(f"MAILTO=root\n{line_of(readme_line(), here, server)}\n")

    wait_until(lambda: succeeded(server) == 1, seconds=70, what="the next minute")
    wait_until(lambda: cron.idle, seconds=20, what="the end of the run")
    assert cron.mail == ""
