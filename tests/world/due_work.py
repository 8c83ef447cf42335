"""The work that jobs of add-ons would have done by now, such as observing overdue parcels."""

from typing import Any

from psycopg import AsyncConnection

from statesvc.seams import parts


async def do_due_work(connection: AsyncConnection[Any]) -> None:
    for catch_up in parts("catch_up"):
        await catch_up(connection, worker="watcher")
