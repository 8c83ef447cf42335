"""Bare INSERTs without HTTP, a process of its own: `direct URL SECONDS`.

Eight connections, one row a commit.
"""

import asyncio
import json
import sys
from uuid import uuid4

import uvloop
from psycopg import AsyncConnection

from tests.bench.bare import INSERT, POOL, TABLE
from tests.bench.traffic import alert


async def main() -> None:
    url, seconds = sys.argv[1], float(sys.argv[2])
    body = alert(0, 0)
    loop = asyncio.get_running_loop()
    connections = [await AsyncConnection.connect(url, autocommit=True) for _ in range(POOL)]
    await connections[0].execute(TABLE)
    started = loop.time()

    async def insert(connection: AsyncConnection) -> int:
        done = 0
        while loop.time() < started + seconds:
            await connection.execute(INSERT, (uuid4(), "ups", body))
            done += 1
        return done

    done = await asyncio.gather(*map(insert, connections))
    sys.stdout.write(json.dumps({"count": sum(done), "elapsed": loop.time() - started}))
    for connection in connections:
        await connection.close()


if __name__ == "__main__":
    uvloop.run(main())
