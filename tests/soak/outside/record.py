"""The ledger itself: a SQLite file outside of the service's database, written before a body goes
out and as its ACK comes.
"""

import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.soak.outside.parcels import Parcel, Push

_TABLES = """
CREATE TABLE parcel (id INTEGER PRIMARY KEY, carrier TEXT, number TEXT, expected TEXT, UNIQUE (carrier, number));
CREATE TABLE body (id INTEGER PRIMARY KEY, parcel INTEGER, carrier TEXT, body BLOB, cause TEXT, empty INTEGER, direct INTEGER, named TEXT);
CREATE TABLE ack (body INTEGER, message TEXT, duplicate INTEGER, at REAL);
CREATE TABLE erasure (carrier TEXT, number TEXT, at REAL);
CREATE TABLE head (note TEXT, at REAL);
CREATE TABLE delivery (webhook TEXT, body BLOB, accepted INTEGER, at REAL);
"""


class Record:
    """Each line is handed to the system before the next request goes out."""

    def __init__(self, path: Path) -> None:
        self._file = sqlite3.connect(path, isolation_level=None)
        self._file.executescript("PRAGMA journal_mode = wal; PRAGMA synchronous = off;" + _TABLES)

    def close(self) -> None:
        self._file.close()

    def rows(self, query: str, *parameters: object) -> list[Any]:
        return self._file.execute(query, parameters).fetchall()

    def _add(self, statement: str, *values: object) -> int:
        return self._file.execute(statement, values).lastrowid or 0

    def begin(self, parcel: Parcel) -> int:
        """Begin a parcel; hostile bodies stand under no number."""
        return self._add(
            "INSERT INTO parcel (carrier, number, expected) VALUES (?, nullif(?, ''), ?)",
            parcel.carrier_id,
            parcel.number,
            json.dumps(parcel.expected()),
        )

    def send(self, parcel: int, push: Push) -> int:
        return self._add(
            "INSERT INTO body (parcel, carrier, body, cause, empty, direct, named) VALUES (?, ?, ?,"
            " ?, ?, ?, ?)",
            *(parcel, push.carrier_id, push.body, push.cause, push.empty, push.direct, push.named),
        )

    def acknowledge(self, body: int, message: str, *, duplicate: bool) -> None:
        self._add("INSERT INTO ack VALUES (?, ?, ?, ?)", body, message, duplicate, time.time())

    def erase(self, carrier: str, number: str) -> None:
        self._add("INSERT INTO erasure VALUES (?, ?, ?)", carrier, number, time.time())

    def store_head(self, note: str) -> None:
        self._add("INSERT INTO head VALUES (?, ?)", note, time.time())

    def receive(self, webhook: str, body: bytes, *, accepted: bool) -> None:
        self._add("INSERT INTO delivery VALUES (?, ?, ?, ?)", webhook, body, accepted, time.time())

    def parcels(self) -> Iterator[tuple[int, str, str, dict[str, Any]]]:
        """Yield those with a number."""
        for key, carrier, number, expected in self.rows(
            "SELECT id, carrier, number, expected FROM parcel WHERE number IS NOT NULL"
        ):
            yield key, carrier, number, json.loads(expected)
