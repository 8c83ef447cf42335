"""SQL over archived months: every question of the page is answered, and no question reaches beyond the files."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.world.log_archivist import Archivist
from tests.world.shell import Shell, use

PAGE = Path(__file__).parents[4] / "docs" / "archive-queries.md"
QUESTIONS = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture(autouse=True)
def _environment(
    two_months: None,  # noqa: ARG001 - fills the database
    database: Any,
    monkeypatch: pytest.MonkeyPatch,
    archivist: Archivist,
) -> None:
    use(database, monkeypatch)
    monkeypatch.setenv("STATESVC_ARCHIVE_DIR", str(archivist.folder))


async def test_every_question_of_the_page_is_answered_from_the_files(
    archivist: Archivist, shell: Shell
) -> None:
    assert "no month of the log is archived yet" in await shell(
        "archive", "query", "SELECT 1", exit_code=1
    )
    month = await archivist.archived()
    for question in QUESTIONS:
        headings, *rows = (await shell("archive", "query", question)).splitlines()
        assert headings.isupper()
        assert rows or "unmapped" in question or "picked_up IS NOT NULL" in question, question
    counted = (
        await shell(
            "archive",
            "query",
            "--json",
            "SELECT entry, count(*) AS n FROM entries GROUP BY entry ORDER BY entry",
        )
    ).splitlines()
    assert f'{{"entry":"event","n":{month.events}}}' in counted
    shown = await shell(
        "archive",
        "query",
        "SELECT leaf_hash, sealed_part FROM entries WHERE entry = 'event' LIMIT 1",
    )
    assert re.search(r"[0-9a-f]{64}", shown)
    # a copy of the folder is enough
    copied = await shell(
        "archive",
        "query",
        "--folder",
        str(archivist.folder),
        "--json",
        "SELECT count(*) AS n FROM events",
    )
    assert copied == f'{{"n":{month.events}}}\n'
    assert month.file_name is not None
    (archivist.folder / month.file_name).rename(archivist.folder / "elsewhere")
    assert f"missing in the archive's folder: {month.file_name}" in await shell(
        "archive", "query", "SELECT 1", exit_code=1
    )


HOSTILE = (
    "COPY (SELECT 1) TO '{folder}/x.csv'",
    "COPY (SELECT 1) TO '{file}'",
    "SELECT 1; SELECT 2",
    "",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('{folder}/../secret')",
    "SELECT * FROM glob('/*')",
    "SET enable_external_access = true",
    "ATTACH '{folder}/x.db'",
    "INSTALL httpfs",
    "DROP VIEW entries",
    "CREATE TABLE x AS SELECT 1",
    "SELECT no_such_column FROM entries",
    "SELECT CAST('x' AS INT) FROM entries",
    "SELEC",
)


async def test_no_question_reaches_beyond_the_files(archivist: Archivist, shell: Shell) -> None:
    month = await archivist.archived()
    (archivist.folder.parent / "secret").write_text("a secret")
    file = archivist.folder / str(month.file_name)
    before = file.read_bytes()
    for question in HOSTILE:
        refused = await shell(
            "archive", "query", question.format(folder=archivist.folder, file=file), exit_code=1
        )
        database, _, sentence = refused.partition("\n")
        assert database.startswith("database: "), question
        assert sentence.startswith("statesvc: "), question
        assert "a secret" not in refused
        assert "Traceback" not in refused
    assert file.read_bytes() == before
    assert [
        path.name for path in archivist.folder.iterdir() if path.suffix in {".csv", ".db"}
    ] == []
