"""The textfile: whole or not at all, and never an older one after a newer."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import threading
import time
from pathlib import Path

import pytest

from taskbatch.metrics.textfile import TextfileError, publish_textfile, write_textfile


def test_the_file_is_replaced_and_readable_by_all(tmp_path: Path) -> None:
    path = tmp_path / "taskbatch.prom"
    path.write_bytes(b"old")
    before = os.umask(0o077)
    try:
        write_textfile(str(path), b"new")
    finally:
        os.umask(before)

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [path.name for path in tmp_path.iterdir()] == ["taskbatch.prom"]


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "taskbatch.prom"
    texts = {b"a" * 100_000, b"b" * 100_000}
    write_textfile(str(path), b"a" * 100_000)
    done = threading.Event()

    def write() -> None:
        for _ in range(50):
            for text in texts:
                write_textfile(str(path), text)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not done.is_set():
        seen.add(path.read_bytes())
    writer.join()

    assert seen <= texts


def test_what_a_killed_run_left_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "taskbatch.prom"
    (tmp_path / ".taskbatch.prom.tmp").write_bytes(b"half")

    write_textfile(str(path), b"new")

    assert [path.name for path in tmp_path.iterdir()] == ["taskbatch.prom"]


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    path, precious = tmp_path / "taskbatch.prom", tmp_path / "precious"
    precious.write_bytes(b"precious")
    (tmp_path / ".taskbatch.prom.tmp").symlink_to(precious)

    write_textfile(str(path), b"new")

    assert path.read_bytes() == b"new"
    assert precious.read_bytes() == b"precious"


def test_errors_are_one_line_and_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder.prom").mkdir()

    with pytest.raises(TextfileError, match=r"folder\.prom: Is a directory$"):
        write_textfile(str(tmp_path / "folder.prom"), b"new")
    with pytest.raises(TextfileError, match=r"missing/a\.prom: No such file or directory$"):
        write_textfile(str(tmp_path / "missing" / "a.prom"), b"new")

    assert [path.name for path in tmp_path.iterdir()] == ["folder.prom"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_publishing_never_raises(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def read() -> bytes:
        msg = "no\nidea"
        raise RuntimeError(msg)

    assert publish_textfile(read, str(tmp_path / "a.prom"), 1.0) is False
    assert publish_textfile(lambda: b"new", str(tmp_path / "missing" / "a.prom"), 1.0) is False

    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert caplog.messages[0] == "metrics not written: no idea"
    assert caplog.messages[1].endswith("missing: No such file or directory")


def test_an_older_text_never_replaces_a_newer(tmp_path: Path) -> None:
    path = str(tmp_path / "taskbatch.prom")
    count, guard = 0, threading.Lock()

    def read() -> bytes:
        nonlocal count
        with guard:
            count += 1
            mine = count
        time.sleep(0.002 * (mine % 3))
        return str(mine).encode()

    seen: list[int] = []
    threads = [threading.Thread(target=publish_textfile, args=(read, path, 10.0)) for _ in range(20)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if Path(path).exists():
            seen.append(int(Path(path).read_bytes()))
    seen.append(int(Path(path).read_bytes()))

    assert seen == sorted(seen)
    assert seen[-1] == 20


def test_waiting_for_a_turn_ends(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    began = time.monotonic()

    written = publish_textfile(lambda: b"new", str(tmp_path / "a.prom"), 0.2)

    assert written is False
    assert time.monotonic() - began < 1.0
    assert caplog.messages == [f"metrics not written: {tmp_path}: another run is still writing"]
    os.close(descriptor)
