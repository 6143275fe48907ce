"""Log lines: one record a line, nothing that moves a cursor, no secrets."""

from __future__ import annotations

import json
import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest

from taskbatch.logs import LineHandler, Redactor, configure, escape

if TYPE_CHECKING:
    from collections.abc import Iterator


class Written(list[str]):
    """The lines that were written."""

    def start(self, log_format: Any = "json", **options: Any) -> None:
        configure(log_format, **{"write": self.append, "live": False, **options})

    @property
    def only(self) -> dict[str, Any]:
        assert len(self) == 1
        entry: dict[str, Any] = json.loads(self[0])
        return entry


@pytest.fixture
def written() -> Iterator[Written]:
    root, own = logging.getLogger(), logging.getLogger("taskbatch")
    before = root.handlers[:], root.level, own.level
    yield Written()
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    own.setLevel(before[2])


def test_a_json_line_has_the_message_and_what_belongs_to_it(written: Written) -> None:
    written.start()

    logging.getLogger("taskbatch.x").warning("task %s failed", "t1", extra={"queue": "mail", "attempt": 2})

    assert written.only.pop("time").endswith("Z")
    entry = written.only
    del entry["time"]
    assert entry == {
        "level": "warning", "logger": "taskbatch.x", "message": "task t1 failed", "queue": "mail", "attempt": 2,
    }  # fmt: skip


NASTY = "a\nb\r\x1b[2J\x7f\x85\x9b\u2028\u2029\u202e\ud800"


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_no_control_character_gets_through(written: Written, log_format: str) -> None:
    written.start(log_format)

    logging.getLogger("job").error(NASTY, extra={"task": NASTY})

    assert len(written) == 1
    assert written[0].isprintable()
    if log_format == "json":
        assert written.only["message"] == NASTY


def test_escaped_text_is_one_printable_line() -> None:
    assert escape("a\n\x1b\x9b\u2028é\ud800") == "a\\n\\x1b\\x9b\\u2028é\\ud800"


def test_text_on_a_terminal_is_short(written: Written) -> None:
    written.start("auto", live=True)

    logging.getLogger("taskbatch").warning("careful", extra={"n": 1})

    assert written[0][8:] == " warning: careful n=1"


def test_auto_is_json_where_nobody_watches(written: Written) -> None:
    written.start("auto")
    logging.getLogger("taskbatch").info("x")
    assert written.only["level"] == "info"


def test_secrets_are_blotted_out_in_both_spellings_and_everywhere(written: Written) -> None:
    redact = Redactor()
    redact.learn("p@ss/word", None, "")
    written.start(redact=redact)

    logging.getLogger("taskbatch").error("at %s and %s", "p@ss/word", "p%40ss%2Fword", extra={"url": "p@ss/word"})

    assert written.only["message"] == "at *** and ***"
    assert written.only["url"] == "***"


def test_a_short_secret_is_not_looked_for() -> None:
    redact = Redactor()
    redact.learn("e")
    assert redact("hello") == "hello"


def test_quiet_says_errors_only(written: Written) -> None:
    written.start(quiet=True, verbose=1)
    logging.getLogger("taskbatch").warning("a retry")
    logging.getLogger("job").warning("a warning of a job")
    logging.getLogger("taskbatch").error("a dead letter")
    assert written.only["message"] == "a dead letter"


def test_verbose_adds_our_debug_lines_and_then_those_of_others(written: Written) -> None:
    written.start(verbose=1)
    logging.getLogger("taskbatch.x").debug("ours")
    logging.getLogger("other").debug("theirs")
    assert written.only["message"] == "ours"

    written.start(verbose=2)
    logging.getLogger("other").debug("theirs")
    assert len(written) == 2


def test_a_traceback_is_for_verbose_only(written: Written) -> None:
    for verbose in (0, 1):
        written.start(verbose=verbose)
        try:
            raise ValueError("boom")
        except ValueError:
            logging.getLogger("taskbatch").exception("failed")
    assert "traceback" not in json.loads(written[0])
    assert "ValueError: boom" in json.loads(written[1])["traceback"]


def test_a_record_that_cannot_be_formatted_is_named(written: Written) -> None:
    class Raising:
        def __str__(self) -> str:
            raise RuntimeError

    written.start()
    logging.getLogger("job.x").error("%s", Raising())
    assert written == ["a log record of job.x cannot be formatted: RuntimeError"]


def test_a_huge_message_is_cut(written: Written) -> None:
    written.start()
    logging.getLogger("job").error("x" * 1_000_000)
    assert len(written[0]) < 17_000


def test_a_timeout_inside_a_log_call_leaves_nothing_locked() -> None:
    lines: list[str] = []
    handler = LineHandler(lines.append, logging.Formatter("%(message)s"))
    record = logging.LogRecord("jobs", logging.INFO, "", 0, "still here", (), None)

    # As if the exception had come between the acquire and the try behind it.
    other = threading.Thread(target=handler.acquire)
    other.start()
    other.join()
    late = threading.Thread(target=handler.handle, args=(record,), daemon=True)
    late.start()
    late.join(5)

    assert lines == ["still here"]
