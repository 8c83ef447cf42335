"""A file is cut at its semicolons, and only there."""

import pytest

from statesvc.database.migration_files import MigrationError, StatementError, Step, split_statements


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("-- only; a comment\n;;/* and; another */", []),
        (
            "SELECT ';', 'it''s;', E'\\';', \";\"; SELECT 2;",
            ["SELECT ';', 'it''s;', E'\\';', \";\"", "SELECT 2"],
        ),
        ("DO $$ BEGIN; END $$; SELECT $a$;$$;$a$", ["DO $$ BEGIN; END $$", "SELECT $a$;$$;$a$"]),
        ("SELECT 1 /* ; /* ; */ ; */; SELECT 2", ["SELECT 1 /* ; /* ; */ ; */", "SELECT 2"]),
        ("SELECT some$name$ FROM t; SELECT $1", ["SELECT some$name$ FROM t", "SELECT $1"]),
    ],
)
def test_quotes_and_comments_hide_semicolons(text: str, statements: list[str]) -> None:
    assert split_statements(text) == statements


@pytest.mark.parametrize(
    "text", ["SELECT 1;\nSELECT 'open", "SELECT 1;\n/* /* */", "SELECT 1;\nSELECT $x$ $y$"]
)
def test_what_is_never_closed_is_refused_by_line(text: str) -> None:
    with pytest.raises(StatementError, match="line 2"):
        split_statements(text)


def test_a_body_that_can_not_be_cut_is_refused() -> None:
    with pytest.raises(StatementError, match="BEGIN ATOMIC"):
        split_statements("CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; END;")


@pytest.mark.parametrize("tail", ["i ON s.t (x)", "IF NOT EXISTS i ON t (x)"])
def test_a_concurrent_index_must_bear_repetition(tail: str) -> None:
    with pytest.raises(MigrationError, match="IF NOT EXISTS name"):
        Step.of(f"CREATE INDEX CONCURRENTLY {tail}", "0002_index")


def test_a_concurrent_index_is_known_by_its_table_s_schema() -> None:
    assert Step.of(
        "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS i ON s.t (x)", "0002_index"
    ).index == ("s", "i", "t", "(x)")
