"""A secret in a URL stays out of everything that is written: log lines of every level, metrics,
stored headers, problems.

Spans begin at the worker, which never sees a URL.
"""

import io
import logging
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from statesvc.ingress.group_commit import Stored
from statesvc.telemetry.logs import configure_logging

TOKEN: Final = "new"
"""The secret of `acme`."""
SECRET: Final = "Zq9SECRET"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Capture all that this process logs, whatever library does."""
    stream = io.StringIO()
    configure_logging(process="ingress", level="debug", stream=stream)
    levels = {
        name: logging.getLogger(name).level
        for name in ("aiohttp.access", "aiohttp.server", "aiohttp.web", "asyncio", "psycopg")
    }
    for name in levels:
        logging.getLogger(name).setLevel(logging.DEBUG)
    yield stream
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    configure_logging(process="test")


async def test_a_token_of_the_query_is_written_nowhere(
    serve: Any, written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = await serve()
    answers = [
        await site.post(b"1", headers={}, query=f"?token={SECRET}"),
        await site.post(
            b"1",
            headers={"Referer": f"https://x/?token={SECRET}"},
            query=f"?token={SECRET}&token={SECRET}",
        ),
        await site.post(b"1", "nobody", headers={}, query=f"?token={SECRET}"),
        await site.post(b"1", "acme/oauth/token", headers={}, query=f"?token={SECRET}"),
        await site.post(b"x" * 100_001, headers={}, query=f"?token={SECRET}"),
    ]
    accepted = await site.post(b"2", headers={}, query=f"?token={TOKEN}&note={SECRET}")
    assert accepted[0] == 200

    async def break_off(*_: Any) -> Stored:
        raise RuntimeError(f"a defect, at ?token={SECRET}")

    monkeypatch.setattr(site.group_commit, "put", break_off)
    answers.append(await site.post(b"3", headers={}, query=f"?token={TOKEN}&note={SECRET}"))
    assert answers[-1][0] == 500
    stored = [str(row) for row in await site.rows("SELECT headers FROM statesvc.body")]
    logged = written.getvalue()
    assert "request_failed" in logged
    for text in (logged, site.telemetry.exposition().decode(), *stored, *map(str, answers)):
        assert SECRET not in text
        # a refusal names the parameter that the carrier sends, never a value
        assert not re.search(r"token=\w", text)
