"""Events that are applied in the request itself."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from aiohttp.test_utils import TestClient, TestServer
from psycopg import AsyncConnection

from events.carriers.canonical import read_line
from events.crypto.keyring import Keyring, body_context, body_key_wrap
from events.crypto.sealing import MasterKeys, unsalted
from events.event import Event
from events.vocabulary import Verdict
from statesvc.api.submission.routes import routes
from statesvc.api.submission.submit import LockedShipments, Submitted, submit
from statesvc.database.keyring_store import load_keyring
from statesvc.database.pool import Pool, PoolLimits, make_pool
from statesvc.database.wakeups.waker import Waker
from statesvc.http.app import build_app
from statesvc.http.keys.api_keys import Keys
from statesvc.log.history import History
from statesvc.privacy.erasure import Erasure, erase
from tests.statesvc.privacy.legible_values import legible

BOOTSTRAP_KEY: Final = "b" * 24
LINES: Final = "application/x-ndjson"
LIMITS = PoolLimits(
    connections_max=8,
    acquire_seconds=5,
    statement_seconds=10,
    lock_seconds=5,
    idle_in_transaction_seconds=10,
)


def _line(
    number: str = "CN1", event_id: str = "e-1", status: str = "in_transit", **more: Any
) -> bytes:
    stated = {
        "carrier_id": "canonical",
        "event_id": event_id,
        "tracking_number": number,
        "occurred_at": "2026-05-01T10:00:00+00:00",
    }
    return json.dumps({**stated, "status": status, **more}).encode()


@dataclass
class Submissions:
    """Takes submissions."""

    pool: Pool
    connection: AsyncConnection[Any]
    keyring: Keyring
    owner_dsn: str

    async def submit(self, *lines: bytes) -> Submitted | LockedShipments:
        events: list[Event] = [read_line(line, self.keyring.carrier_digest) for line in lines]
        return await submit(
            self.pool,
            self.keyring,
            events,
            body=b"\n".join(lines),
            writer="api-1",
            archive=History(None),
        )

    async def verdicts(self, *lines: bytes) -> list[Verdict]:
        submitted = await self.submit(*lines)
        assert isinstance(submitted, Submitted)
        return list(submitted.verdicts)

    async def rows(self, query: str) -> list[Any]:
        return await (await self.connection.execute(query.encode())).fetchall()

    async def counts(self) -> list[int]:
        found = [
            await self.rows(f"SELECT count(*) FROM statesvc.{table}")
            for table in ("event", "conflict", "message", "body", "batch")
        ]
        return [rows[0][0] for rows in found]

    async def as_owner(self, statement: str) -> None:
        async with await AsyncConnection.connect(self.owner_dsn, autocommit=True) as connection:
            await connection.execute(statement.encode())


@pytest.fixture
async def submissions(database: Any) -> AsyncIterator[Submissions]:
    pool = make_pool(database.service_dsn, name="submission test", limits=LIMITS)
    await pool.open()
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        yield Submissions(
            pool,
            connection,
            await load_keyring(connection, MasterKeys([bytes(range(32))])),
            database.owner_dsn,
        )
    await pool.close()


async def test_each_event_has_its_verdict_in_the_order_of_the_request(
    submissions: Submissions,
) -> None:
    lines = (_line(), _line(event_id="e-2", status="delivered"), _line(), _line(status="exception"))
    assert await submissions.verdicts(*lines) == [
        Verdict.APPENDED,
        Verdict.APPENDED,
        Verdict.DUPLICATE,
        Verdict.CONFLICT,
    ]
    assert await submissions.rows("SELECT from_status, to_status FROM statesvc.transition") == [
        ("unknown", "delivered")
    ]
    assert await submissions.counts() == [2, 1, 1, 1, 1]


async def test_a_request_of_duplicates_leaves_nothing_behind(submissions: Submissions) -> None:
    await submissions.submit(_line())
    before = await submissions.counts()
    assert await submissions.verdicts(_line()) == [Verdict.DUPLICATE]
    assert await submissions.counts() == before


async def test_the_body_is_kept_under_the_keys_of_its_shipments(submissions: Submissions) -> None:
    line = _line()
    submitted = await submissions.submit(line)
    assert isinstance(submitted, Submitted)
    ((shipment_id, sealed_key),) = await submissions.rows(
        "SELECT shipment_id, sealed_key FROM statesvc.stream"
    )
    ((message_id, shipments, wrapped),) = await submissions.rows(
        "SELECT message_id, shipments, sealed_key FROM statesvc.message"
    )
    assert (message_id, shipments) == (submitted.message_id, [shipment_id])
    context = body_context(message_id)
    wrap = body_key_wrap(
        {shipment_id: submissions.keyring.open_shipment_key(sealed_key, shipment_id)}, message_id
    )
    key = wrap.unwrap(wrapped, context)
    ((sealed,),) = await submissions.rows("SELECT sealed FROM statesvc.body")
    assert unsalted(key.open(sealed, context)) == line


async def test_the_same_event_from_many_clients_at_once_is_appended_once(
    submissions: Submissions,
) -> None:
    for place in range(5):
        lines = [_line(event_id=f"e-{place}-{n}") for n in range(3)]
        outcomes = await asyncio.gather(
            *(submissions.verdicts(*(lines if n % 2 else lines[::-1])) for n in range(6))
        )
        assert sum(outcome.count(Verdict.APPENDED) for outcome in outcomes) == 3
        assert sum(outcome.count(Verdict.DUPLICATE) for outcome in outcomes) == 15
    assert (await submissions.counts())[0] == 15


async def test_one_of_two_contradicting_clients_wins_and_the_other_is_told(
    submissions: Submissions,
) -> None:
    outcomes = await asyncio.gather(
        submissions.verdicts(_line()), submissions.verdicts(_line(status="delivered"))
    )
    assert sorted(verdict for (verdict,) in outcomes) == [Verdict.APPENDED, Verdict.CONFLICT]
    assert (await submissions.counts())[:2] == [1, 1]


async def test_a_held_carrier_takes_nothing_until_its_release(submissions: Submissions) -> None:
    for carrier_id in ("canonical", "*"):
        await submissions.as_owner(
            "INSERT INTO statesvc.rollout (carrier_id, hold, changed_at, changed_by) VALUES"
            f" ('{carrier_id}', true, now(), 't')"
        )
        assert await submissions.submit(_line()) == LockedShipments(("canonical",))
        assert await submissions.counts() == [0, 0, 0, 0, 0]
        await submissions.as_owner("DELETE FROM statesvc.rollout")
    assert await submissions.verdicts(_line()) == [Verdict.APPENDED]


@pytest.mark.parametrize(
    "failure",
    [
        "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1);",
        "RAISE EXCEPTION 'x' USING ERRCODE = '40P01';",
    ],
)
async def test_a_passing_failure_is_tried_again_and_applied_once(
    submissions: Submissions, failure: str
) -> None:
    await submissions.as_owner(
        "CREATE SEQUENCE statesvc.test_times; GRANT USAGE ON SEQUENCE statesvc.test_times TO"
        " PUBLIC;CREATE FUNCTION statesvc.test_fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF nextval('statesvc.test_times') <= 2 THEN {failure} END IF; RETURN new; END $$;CREATE"
        " TRIGGER test_fail BEFORE INSERT ON statesvc.event FOR EACH ROW EXECUTE FUNCTION"
        " statesvc.test_fail()"
    )
    assert await submissions.verdicts(_line()) == [Verdict.APPENDED]
    assert await submissions.counts() == [1, 0, 1, 1, 1]


async def post(
    submissions: Submissions, body: bytes, content_type: str = LINES, *, strict: bool = False
) -> tuple[int, Any, str | None]:
    """Submit over HTTP; return the status, the answer, and which preference was applied."""
    waker = Waker(submissions.owner_dsn)
    served = routes(
        pool=submissions.pool,
        keyring=submissions.keyring,
        waker=waker,
        writer="api-1",
        archive=History(None),
    )
    app = build_app(served, keys=Keys(submissions.pool, bootstrap_key=BOOTSTRAP_KEY))
    headers = {"Authorization": f"Bearer {BOOTSTRAP_KEY}", "Content-Type": content_type}
    if strict:
        headers["Prefer"] = "respond-async, Handling=strict; foo"
    async with TestClient(TestServer(app)) as client:
        answer = await client.post("/v1/events", data=body, headers=headers)
        found = await answer.json()
    await waker.stop()
    return answer.status, found, answer.headers.get("Preference-Applied")


async def test_a_line_that_is_no_event_is_not_stored_with_the_others(
    submissions: Submissions,
) -> None:
    # whom it names could not be found when they are erased
    invalid = _line("CN2", "e-2", "nowhere", signed_by="Zebedee Quux")
    body = b"\n".join((_line(signed_by="Mortimer Other"), b"Zebedee Quux lives here", invalid))
    _, answer, _ = await post(submissions, body)
    assert [each["verdict"] for each in answer["results"]] == [
        "appended",
        "invalid",
        "invalid",
    ]
    erasure = Erasure(
        carrier_id="canonical", tracking_number="CN2", why="asked to", actor="tester", backup_days=7
    )
    await erase(submissions.connection, erasure)
    legibly = await legible(submissions.connection)
    assert b"Mortimer Other" in legibly
    assert b"Zebedee" not in legibly


async def test_a_time_of_another_year_is_refused_and_one_of_a_clock_that_is_ahead_is_taken(
    submissions: Submissions,
) -> None:
    now = datetime.now(UTC)
    body = b"\n".join(
        (
            _line("CN1", "e-1", occurred_at=(now + timedelta(hours=20)).isoformat()),
            _line("CN1", "e-2", occurred_at=(now + timedelta(days=365)).isoformat()),
        )
    )
    _, answer, _ = await post(submissions, body)
    taken, refused = answer["results"]
    assert taken["verdict"] == "appended"
    assert refused["errors"] == [
        {
            "pointer": "/occurred_at",
            "detail": "lies more than a day ahead: is the year right, or the offset?",
        }
    ]
    assert await submissions.counts() == [1, 0, 1, 1, 1]


MISSPELT: Final[list[tuple[dict[str, Any], str, str | None]]] = [
    ({"reasn": "weather"}, "/reasn", "reason"),
    ({"Reason": "weather"}, "/Reason", "reason"),
    ({"locaton": {"city": "Reno"}}, "/locaton", "location"),
    ({"location": {"cty": "Reno"}}, "/location/cty", "city"),
    ({"location": {"postcode": "89501"}}, "/location/postcode", "postal_code"),
    ({"estimated_delivry": "2026-05-02"}, "/estimated_delivry", "estimated_delivery"),
    ({"signedby": "A"}, "/signedby", "signed_by"),
    ({"tz_sorce": "explicit"}, "/tz_sorce", "tz_source"),
    ({"carrier_cod": "X1"}, "/carrier_cod", "carrier_code"),
    ({"colour": "red"}, "/colour", None),
    ({"A. Person, 5 Main St": 1}, "", None),
]


@pytest.mark.parametrize(("member", "pointer", "proposal"), MISSPELT)
async def test_an_unknown_member_is_a_warning_and_under_strict_handling_refused(
    submissions: Submissions, member: dict[str, Any], pointer: str, proposal: str | None
) -> None:
    body, warning = _line(**member), {"pointer": pointer, "proposal": proposal}
    status, refused, applied = await post(submissions, body, "application/json", strict=True)
    assert (status, applied) == (422, "handling=strict")
    (error,) = refused["errors"]
    assert error["pointer"] == f"/body{pointer}"
    assert error["detail"] == "is no member of it" + (
        f"; did you mean `{proposal}`?" if proposal else ""
    )
    _, lines, _ = await post(submissions, body, strict=True)
    assert lines["results"][0]["verdict"] == "invalid"
    assert await submissions.counts() == [0, 0, 0, 0, 0], "nothing was applied"

    status, taken, applied = await post(submissions, body, "application/json")
    assert (status, taken["verdict"], applied) == (201, "appended", None)
    assert taken["warnings"] == [{**warning, "pointer": f"/body{pointer}"}]
    _, lines, _ = await post(submissions, body)
    assert lines["results"] == [{"line": 1, "verdict": "duplicate", "warnings": [warning]}]
