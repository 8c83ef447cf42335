"""API keys of all cells: the same key is good in each of them, or in none."""

from statesvc.cells.directory import CellDirectory
from statesvc.cli.cell_databases import all_databases
from statesvc.cli.session import actor
from statesvc.http.key_store import copy, read_all
from statesvc.subscriptions.key_revocation import revoke_key


async def spread_keys(directory: CellDirectory) -> list[str]:
    """Copies each live key to the cells that lack it; revokes everywhere what is revoked anywhere. Says what was done.

    Each cell's part is its own transactions: cut short, it is called again. Raises CommandError.
    """
    done: list[str] = []
    async with all_databases(directory) as databases:
        stored = {name: await read_all(connection) for name, connection in databases.items()}
        revoked = {key.key_id for keys in stored.values() for key in keys if key.is_revoked}
        good = {key.key_id: key for keys in stored.values() for key in keys if key.key_id not in revoked}
        for name, connection in databases.items():
            copied = [key.key_id for key in good.values() if await copy(connection, key, actor=actor())]
            ended = [key.key_id for key in stored[name] if key.key_id in revoked and not key.is_revoked]
            for key_id in ended:
                await revoke_key(connection, key_id=key_id, revoked_by=actor())
            done.append(f"{name}: {len(copied)} copied, {len(ended)} revoked, {len(good)} good in all")
    return done
