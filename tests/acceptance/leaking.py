"""Runs `statesvc` where a body that says so makes things fail with the body in the error's text:
`python -m tests.acceptance.leaking ...`.

Only the places where an error is raised are planted. What the service makes of it is its own.
"""

import asyncio
import logging
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import psycopg

from events.carriers import CARRIERS
from events.event import Normalized
from statesvc import cli
from statesvc.append import transaction
from statesvc.worker import batch

FORCED: Final = b"forced-failure"
FORCED_APPEND: Final = "forced-append-failure"


def main() -> int:
    for carrier_id, carrier in list(CARRIERS.items()):
        normalizers = {
            version: _failing(normalize) for version, normalize in carrier.normalizers.items()
        }
        CARRIERS[carrier_id] = replace(carrier, normalizers=normalizers)
    append = transaction.append_claimed

    async def append_or_fail(*arguments: Any, **options: Any) -> Any:
        text = repr((arguments, options))
        if FORCED_APPEND in text:
            raise psycopg.errors.InvalidTextRepresentation(
                f"invalid input syntax for type integer: {text}"
            )
        return await append(*arguments, **options)

    vars(batch)["append_claimed"] = append_or_fail
    return cli.main()


def _failing(
    normalize: Callable[[bytes, datetime], Normalized],
) -> Callable[[bytes, datetime], Normalized]:
    def read(body: bytes, received_at: datetime) -> Normalized:
        if FORCED in body:
            _fail_everywhere(body.decode("utf-8", "replace"))
        return normalize(body, received_at)

    return read


def _fail_everywhere(text: str) -> None:
    """Fail as libraries do: in log lines, warnings, threads, tasks that nobody awaits,
    and in causes of causes.
    """

    def fail() -> None:
        raise KeyError(text)

    async def fail_later() -> None:
        fail()

    library = logging.getLogger("library")
    library.warning("could not read %r: %s", text, ValueError(text))
    library.error(f"a message of one line: {text}")
    warnings.warn(text, stacklevel=1)
    thread = threading.Thread(target=fail, name=text[:40])
    thread.start()
    thread.join()
    asyncio.get_running_loop().create_task(fail_later(), name=text[:40])
    try:
        fail()
    except KeyError as error:
        library.exception("failed with %s", text)
        raise RuntimeError(text) from error


if __name__ == "__main__":
    sys.exit(main())
