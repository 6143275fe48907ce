"""`ledger.book`: add an amount to an account's balance in SQLite.

At least once: adding twice would be wrong. So the task's id is stored in the same transaction as the new
balance: either both are there or neither, and the second time the id is there already, so nothing is
added. This works with every database that has transactions; it does not work across two systems.

    taskbatch enqueue ledger.book '{"account": "anna", "cents": 1250}'

The file is named by LEDGER_DB (`ledger.db` by default) and made when it is not there.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass

from taskbatch import Task, job

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS bookings (task_id TEXT PRIMARY KEY, account TEXT, cents INTEGER)",
    "CREATE TABLE IF NOT EXISTS balances (account TEXT PRIMARY KEY, cents INTEGER)",
)
BOOK = "INSERT INTO bookings VALUES (?, ?, ?) ON CONFLICT (task_id) DO NOTHING"
ADD = """INSERT INTO balances VALUES (?, ?)
         ON CONFLICT (account) DO UPDATE SET cents = cents + excluded.cents"""
LOCK_TIMEOUT = 10.0


@dataclass(frozen=True)
class Booking:
    """An amount in cents, negative to take away."""

    account: str
    cents: int


@job("ledger.book", timeout=30)
def book(booking: Booking, task: Task) -> None:
    """Book once, however often the task runs."""
    import sqlite3  # noqa: PLC0415 - see jobs/__init__.py

    if not task.id:
        msg = "a booking needs a task id, or a repeat could not be told from a new one"
        raise ValueError(msg)
    path = os.environ.get("LEDGER_DB", "ledger.db")
    with closing(sqlite3.connect(path, timeout=LOCK_TIMEOUT, isolation_level=None)) as database:
        # Immediate: two runs that first read and then write would fail instead of waiting for each other.
        database.execute("BEGIN IMMEDIATE")
        for statement in SCHEMA:
            database.execute(statement)
        if database.execute(BOOK, (task.id, booking.account, booking.cents)).rowcount:
            database.execute(ADD, (booking.account, booking.cents))
        database.execute("COMMIT")  # whatever is raised before rolls back when the connection is closed
