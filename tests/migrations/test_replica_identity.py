"""Every table can be replicated logically: what follows it, of another release or another system,
can tell which row was changed.
"""

import psycopg

from tests.world.database import Database

NAMELESS = """
    SELECT c.relname FROM pg_class c
    WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relkind IN ('r', 'p') AND c.relreplident <> 'f' AND c.relname <> 'test_clock'
        AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND (i.indisprimary OR i.indisreplident))"""
"""Tables whose rows nothing identifies."""


async def test_each_table_has_a_key_or_says_that_its_whole_row_is_one(database: Database) -> None:
    async with await psycopg.AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        assert await (await owner.execute(NAMELESS)).fetchall() == []
        # what the statement above would find
        await owner.execute("ALTER TABLE statesvc.shipment_touched REPLICA IDENTITY DEFAULT")
        assert await (await owner.execute(NAMELESS)).fetchall() == [("shipment_touched",)]
