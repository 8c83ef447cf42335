"""Warnings of `migrate --check` about statements that keep the service waiting."""

import pytest

from statesvc.database.migration_files import Migration
from statesvc.database.migration_pauses import pauses


def found(*texts: str) -> list[str]:
    return [
        pause.why
        for pause in pauses(Migration(9 + place, "later", text) for place, text in enumerate(texts))
    ]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("CREATE INDEX later ON statesvc.event (carrier_id)", "CREATE INDEX CONCURRENTLY"),
        (
            "create unique index later on only statesvc.event (carrier_id)",
            "CREATE INDEX CONCURRENTLY",
        ),
        ("DROP INDEX statesvc.later", "DROP INDEX CONCURRENTLY"),
        ("ALTER TABLE statesvc.event ALTER COLUMN version TYPE bigint", "writes the table anew"),
        ("ALTER TABLE statesvc.event ALTER version SET DATA TYPE bigint", "writes the table anew"),
        (
            "ALTER TABLE statesvc.event ADD COLUMN a int, ADD COLUMN b uuid DEFAULT gen_random_uuid()",
            "a value for each row",
        ),
        (
            "ALTER TABLE statesvc.event ADD COLUMN at timestamptz NOT NULL DEFAULT statesvc.clock()",
            "a value for each row",
        ),
        (
            "ALTER TABLE statesvc.event ADD COLUMN n bigint GENERATED ALWAYS AS IDENTITY",
            "writes the table anew",
        ),
        (
            "ALTER TABLE statesvc.event ALTER COLUMN carrier_id\n    SET NOT NULL",
            "reads the whole table",
        ),
        ("ALTER TABLE statesvc.event ADD CONSTRAINT c CHECK (version > 0)", "NOT VALID"),
        ("ALTER TABLE statesvc.event ADD FOREIGN KEY (a) REFERENCES statesvc.b (a)", "NOT VALID"),
        ("ALTER TABLE ONLY statesvc.event ADD CONSTRAINT c UNIQUE (a, b)", "USING INDEX"),
        ("ALTER TABLE statesvc.event ADD COLUMN a int NOT NULL", "with a DEFAULT"),
        ("ALTER TABLE statesvc.event SET UNLOGGED", "writes the table anew"),
        (
            "ALTER TABLE statesvc.event ATTACH PARTITION statesvc.p FOR VALUES FROM (1) TO (2)",
            "reads the whole partition",
        ),
        ("ALTER TABLE statesvc.event DROP COLUMN a", "one release later"),
        ("ALTER TABLE statesvc.event RENAME COLUMN a TO b", "one release later"),
        ("DROP TABLE statesvc.later", "one release later"),
        ("-- all of them\nUPDATE statesvc.shipment SET version = 1", "in portions"),
        ("VACUUM FULL statesvc.shipment", "written anew"),
        ("DO $$ BEGIN PERFORM 1; END $$", "not seen"),
    ],
)
def test_a_statement_that_keeps_others_waiting_is_named_with_what_to_write_instead(
    statement: str, why: str
) -> None:
    (said,) = found(f"SELECT 1;\n{statement};\n")
    assert why in said


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS later ON statesvc.event (carrier_id)",
        "ALTER TABLE statesvc.event ADD COLUMN service text",
        "ALTER TABLE statesvc.event ADD COLUMN tries int NOT NULL DEFAULT 0, ADD COLUMN at timestamptz DEFAULT now()",
        "ALTER TABLE statesvc.event ADD CONSTRAINT c CHECK (version > 0) NOT VALID",
        "ALTER TABLE statesvc.event VALIDATE CONSTRAINT c",
        "ALTER TABLE statesvc.event ADD CONSTRAINT c UNIQUE USING INDEX later",
        "ALTER TABLE statesvc.event ALTER COLUMN service SET DEFAULT 'x', ALTER COLUMN service SET STATISTICS 50",
        "ALTER TABLE statesvc.event DROP CONSTRAINT c",
        "COMMENT ON TABLE statesvc.event IS 'ALTER TABLE x DROP COLUMN y; UPDATE'",
        "INSERT INTO statesvc.setting VALUES ('UPDATE', 1)",
    ],
)
def test_what_only_adds_passes(statement: str) -> None:
    assert found(f"{statement};") == []


def test_a_table_that_the_pending_files_make_is_empty() -> None:
    made = "CREATE TABLE statesvc.later (a int);\nCREATE INDEX later_a ON statesvc.later (a);"
    assert found(made, "ALTER TABLE statesvc.later ALTER COLUMN a SET NOT NULL;") == []


def test_a_file_that_cannot_be_divided_is_named() -> None:
    (said,) = found(
        "CREATE FUNCTION statesvc.later() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; END;"
    )
    assert "cannot be looked through" in said
