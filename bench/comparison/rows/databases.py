# SPDX-License-Identifier: LGPL-2.1-or-later
"""A database on one client: small transactions, each durable, with the locks that SQLite takes and drops."""

import contextlib
import sqlite3
import time

from comparison.row import Row, Work


def rows(workspace):
    transactions = workspace.sizes.transactions

    def row(journal):
        def path(system):
            return system.path / f"database {journal}"

        def fresh(system):
            for old in system.path.glob(f"{path(system).name}*"):
                old.unlink()
            with contextlib.closing(sqlite3.connect(path(system))) as database:
                database.execute(f"PRAGMA journal_mode={journal}")
                database.execute("CREATE TABLE rows (number, text)")
                database.commit()

        def insert(system):
            with contextlib.closing(sqlite3.connect(path(system), isolation_level=None)) as database:
                began = time.monotonic()
                for number in range(transactions):
                    database.execute("INSERT INTO rows VALUES (?, ?)", (number, "x" * 100))
                return Work(transactions, time.monotonic() - began)
        return Row(f"SQLite, {journal} journal", "databases", "transactions/s", insert, fresh)

    yield row("delete")
    yield row("wal")
