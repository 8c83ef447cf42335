from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.adapt import PyFormat, Transformer

from statesvc.database.queries import Encoder, bools, byteas, ints, texts, timestamps, uuids

COLUMNS: dict[str, tuple[Encoder, list[Any]]] = {
    "uuid": (uuids, [UUID(int=0), UUID(int=2**128 - 1), UUID(int=7)]),
    "text": (texts, ["", "Übach \U0001f4e6", None, 'quote " and {comma,}', "x" * 10_000]),
    "bytea": (byteas, [b"", None, bytes(range(256)), b"x" * 10_000]),
    "bool": (bools, [True, False, True]),
    "timestamptz": (
        timestamps,
        [
            None,
            datetime(2026, 3, 1, 14, 5, 0, 123456, tzinfo=timezone(timedelta(hours=-5))),
            datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
            datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        ],
    ),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_is_what_psycopg_sends(kind: str) -> None:
    encode, members = COLUMNS[kind]
    (expected,) = Transformer(psycopg.adapters).dump_sequence([members], [PyFormat.BINARY])
    assert expected is not None
    dimensions_and_nulls = 8
    assert encode(members)[dimensions_and_nulls:] == bytes(expected)[dimensions_and_nulls:]


def test_numbers_are_of_the_width_that_the_queries_cast_to() -> None:
    wide = [2**31 - 1, -(2**31), 2**20]
    (expected,) = Transformer(psycopg.adapters).dump_sequence(
        [[2**31 - 1, -(2**31), 2**20]], [PyFormat.BINARY]
    )
    assert ints(wide)[20:] == bytes(expected or b"")[20:]
