"""The page of questions to archived months, run in DuckDB."""

import re
from pathlib import Path
from typing import Final

import duckdb
import pytest

from tests.world.log_archivist import Archivist

PAGE: Final = Path(__file__).parents[4] / "docs" / "archive-queries.md"
VIEWS, *QUESTIONS = re.findall(r"```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.mark.usefixtures("two_months")
async def test_duckdb_answers_each_question_of_the_page(archivist: Archivist) -> None:
    month = await archivist.archived()
    with duckdb.connect() as connection:
        connection.execute(VIEWS.replace("/var/lib/statesvc/archive", str(archivist.folder)))
        for question in QUESTIONS:
            rows = connection.execute(question).fetchall()
            assert rows or "unmapped" in question or "picked_up IS NOT NULL" in question, question
        events = connection.execute("SELECT count(*) FROM events").fetchall()
        entries = connection.execute("SELECT count(*) FROM entries").fetchall()
    assert events == [(month.events,)]
    assert entries == [(month.entries,)]
