"""Batches on two databases in turn, and the processor time of each.

A process of its own: `expectation_steps ARMED_URL UNARMED_URL`.

Writes microseconds of an event, medians, and how many percent more the armed one of a pair took,
the median: what the machine does besides meets both of a pair alike.
"""

import gc
import json
import sys
from contextlib import AsyncExitStack
from statistics import median

import uvloop

from tests.bench.batch_steps import Batches, connect
from tests.bench.expectations import BATCH, PAIRS, WARMING
from tests.bench.inbox import keyring_of


async def main() -> None:
    async with AsyncExitStack() as stack:
        sides = []
        for url in sys.argv[1:3]:
            claimer, appender = [
                await stack.enter_async_context(await connect(url)) for _ in range(2)
            ]
            sides.append(Batches(claimer, appender, await keyring_of(claimer)))
        for _ in range(WARMING):
            for side in sides:
                await side.one(BATCH)
        gc.collect()
        gc.freeze()
        seen: list[dict[int, float]] = []
        for turn in range(PAIRS):
            pair = {}
            for place in (0, 1) if turn % 2 else (1, 0):
                pair[place] = sum((await sides[place].one(BATCH)).values())
            seen.append(pair)
    armed, unarmed = ([pair[place] for pair in seen] for place in (0, 1))
    percent = [(pair[0] / pair[1] - 1) * 100 for pair in seen]
    figures = {
        "armed": median(armed) * 1e6 / BATCH,
        "unarmed": median(unarmed) * 1e6 / BATCH,
        "percent": median(percent),
    }
    sys.stdout.write(json.dumps(figures))


if __name__ == "__main__":
    uvloop.run(main())
