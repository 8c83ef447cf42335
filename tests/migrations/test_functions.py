"""The files of functions: each can be applied again at any time, alone, and leaves
what a new database has.
"""

from pathlib import Path
from typing import Any

from psycopg import AsyncConnection

from statesvc.database.migrator import migrate

FILES = sorted(
    file.stem for file in (Path(__file__).parents[2] / "migrations" / "functions").glob("*.sql")
)
SCHEMA = "FROM pg_proc p WHERE p.pronamespace = 'statesvc'::regnamespace"
OF_TABLES = {
    "statesvc.await_sealing()",
    "statesvc.clock()",
    "statesvc.make_append_only(regclass)",
    "statesvc.bucket(uuid,text,text)",
    "statesvc.in_share(uuid,text,integer)",
    "statesvc.next_batch_id()",
    "statesvc.note_touched()",
    "statesvc.refuse_change()",
    "statesvc.refuse_unpacked()",
    "statesvc.sample_little(regclass)",
}
"""Functions of the numbered files: tables could not be made without them."""


async def rows(dsn: str, statement: str) -> list[Any]:
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        cursor = await connection.execute(statement.encode())
        return await cursor.fetchall() if cursor.description else []


async def functions(database: Any) -> dict[str, tuple[str, bool, bool]]:
    """Return each with its text, and whether the service and everybody may call it."""
    found = await rows(
        database.owner_dsn,
        "SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid),"
        " has_function_privilege('statesvc_service', p.oid, 'EXECUTE'), coalesce('=X' = ANY"
        f" (SELECT split_part(a::text, '/', 1) FROM unnest(p.proacl) a), true) {SCHEMA}",
    )
    return {
        signature: (text, by_service, by_everybody)
        for signature, text, by_service, by_everybody in found
    }


async def test_every_function_belongs_to_a_table_or_to_one_file(database: Any) -> None:
    made = [
        signature
        for (signature,) in await rows(
            database.owner_dsn, "SELECT unnest(functions) FROM statesvc.schema_functions"
        )
    ]
    assert len(made) == len(set(made))
    assert set(made) | OF_TABLES == set(await functions(database))
    assert set(made).isdisjoint(OF_TABLES)


async def test_a_file_of_functions_can_be_applied_again_alone(database: Any) -> None:
    before = await functions(database)
    for file in FILES:
        await rows(
            database.owner_dsn,
            f"UPDATE statesvc.schema_functions SET sha256 = 'of an older text' WHERE file = '{file}'",
        )
        assert (await migrate(database.owner_dsn, database.service_dsn)).applied == (
            f"functions/{file}",
        ), file
        assert await functions(database) == before, file
        assert (await migrate(database.owner_dsn, database.service_dsn)).applied == (), file


async def test_what_destroys_is_not_for_everybody(database: Any) -> None:
    found = await functions(database)
    restricted = {
        signature.partition("(")[0]
        for signature, (_, _, by_everybody) in found.items()
        if not by_everybody
    }
    assert restricted == {
        "statesvc.drop_archived_day",
        "statesvc.drop_expired_messages",
        "statesvc.drop_log_month",
        "statesvc.forget_named_streams",
        "statesvc.name_shipments",
        "statesvc.pack_keys",
    }
    assert all(by_service for _, by_service, _ in found.values())


async def test_prepared_calls_go_on_with_the_new_functions(
    database: Any, service: AsyncConnection[Any]
) -> None:
    for last in (False, True):
        for _ in range(3):
            await service.execute(
                "SELECT * FROM statesvc.claim('w', 1, interval '1 s')", prepare=True
            )
            await service.execute("SELECT statesvc.next_due()", prepare=True)
        if not last:
            await rows(
                database.owner_dsn,
                "UPDATE statesvc.schema_functions SET sha256 = 'of an older text'",
            )
            assert len((await migrate(database.owner_dsn, database.service_dsn)).applied) == len(
                FILES
            )
