"""Events that are applied in the request itself."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from psycopg import AsyncConnection

from events.crypto.keyring import body_context, body_key_wrap
from events.crypto.sealing import unsalted
from tests.statesvc.privacy.legible_values import legible
from tests.world.api import Api, Reply


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


async def post(
    api: Api, *lines: bytes, content_type: str = "application/x-ndjson", strict: bool = False
) -> Reply:
    headers = {"Content-Type": content_type}
    if strict:
        headers["Prefer"] = "respond-async, Handling=strict; foo"
    body = b"\n".join(lines)
    return await api.call("POST", "/v1/events", scopes="ingest", data=body, headers=headers)


async def verdicts(api: Api, *lines: bytes) -> list[str]:
    return [each["verdict"] for each in (await post(api, *lines)).body["results"]]


async def counts(api: Api) -> list[int]:
    """Count events, conflicts, messages, bodies and batches (but for those of the test's keys)."""
    batch = "batch WHERE batch_id NOT IN (SELECT batch_id FROM statesvc.action)"
    tables = ("event", "conflict", "message", "body", batch)
    found = [await api.rows(f"SELECT count(*) FROM statesvc.{table}") for table in tables]
    return [count for ((count,),) in found]


async def test_each_event_has_its_verdict_in_the_order_of_the_request(api: Api) -> None:
    lines = (_line(), _line(event_id="e-2", status="delivered"), _line(), _line(status="exception"))
    assert await verdicts(api, *lines) == ["appended", "appended", "duplicate", "conflict"]
    assert await api.rows("SELECT from_status, to_status FROM statesvc.transition") == [
        ("unknown", "delivered")
    ]
    assert await counts(api) == [2, 1, 1, 1, 1]
    assert await verdicts(api, _line()) == ["duplicate"]
    assert await counts(api) == [2, 1, 1, 1, 1], "a request of duplicates leaves nothing behind"


async def test_the_body_is_kept_under_the_keys_of_its_shipments(api: Api) -> None:
    await post(api, _line())
    ((shipment_id, sealed_key),) = await api.rows(
        "SELECT shipment_id, sealed_key FROM statesvc.stream"
    )
    ((message_id, shipments, wrapped, sealed),) = await api.rows(
        "SELECT message_id, shipments, sealed_key, sealed FROM statesvc.message JOIN statesvc.body"
        " USING (message_id)"
    )
    assert shipments == [shipment_id]
    context = body_context(message_id)
    own = api.keyring.open_shipment_key(sealed_key, shipment_id)
    key = body_key_wrap({shipment_id: own}, message_id).unwrap(wrapped, context)
    assert unsalted(key.open(sealed, context)) == _line()


async def test_the_same_event_from_many_clients_at_once_is_appended_once(api: Api) -> None:
    for place in range(5):
        lines = [_line(event_id=f"e-{place}-{n}") for n in range(3)]
        outcomes = await asyncio.gather(
            *(verdicts(api, *(lines if n % 2 else lines[::-1])) for n in range(6))
        )
        assert sum(outcome.count("appended") for outcome in outcomes) == 3
        assert sum(outcome.count("duplicate") for outcome in outcomes) == 15
    assert (await counts(api))[0] == 15


async def test_one_of_two_contradicting_clients_wins_and_the_other_is_told(api: Api) -> None:
    outcomes = await asyncio.gather(
        verdicts(api, _line()), verdicts(api, _line(status="delivered"))
    )
    assert sorted(verdict for (verdict,) in outcomes) == ["appended", "conflict"]
    assert (await counts(api))[:2] == [1, 1]


async def test_a_held_carrier_takes_nothing_until_its_release(
    api: Api, owner: AsyncConnection[Any]
) -> None:
    for carrier_id in ("canonical", "*"):
        await owner.execute(
            "INSERT INTO statesvc.rollout (carrier_id, hold, changed_at, changed_by) VALUES"
            " (%s, true, now(), 't')",
            (carrier_id,),
        )
        refused = await post(api, _line())
        assert (refused.status, refused.body["code"]) == (503, "held")
        assert await counts(api) == [0, 0, 0, 0, 0]
        await owner.execute("DELETE FROM statesvc.rollout")
    assert await verdicts(api, _line()) == ["appended"]


@pytest.mark.parametrize(
    "failure",
    [
        "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1);",
        "RAISE EXCEPTION 'x' USING ERRCODE = '40P01';",
    ],
)
async def test_a_passing_failure_is_tried_again_and_applied_once(
    api: Api, owner: AsyncConnection[Any], failure: str
) -> None:
    await owner.execute(
        "CREATE SEQUENCE statesvc.test_times; GRANT USAGE ON SEQUENCE statesvc.test_times TO"
        " PUBLIC;CREATE FUNCTION statesvc.test_fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF nextval('statesvc.test_times') <= 2 THEN {failure} END IF; RETURN new; END $$;CREATE"
        " TRIGGER test_fail BEFORE INSERT ON statesvc.event FOR EACH ROW EXECUTE FUNCTION"
        " statesvc.test_fail()".encode()
    )
    assert await verdicts(api, _line()) == ["appended"]
    assert await counts(api) == [1, 0, 1, 1, 1]


async def test_a_line_that_is_no_event_is_not_stored_with_the_others(api: Api) -> None:
    # whom it names could not be found when they are erased
    invalid = _line("CN2", "e-2", "nowhere", signed_by="Zebedee Quux")
    lines = (_line(signed_by="Mortimer Other"), b"Zebedee Quux lives here", invalid)
    assert await verdicts(api, *lines) == ["appended", "invalid", "invalid"]
    legibly = await legible(api.connection)
    assert b"Mortimer Other" in legibly
    assert b"Zebedee" not in legibly


async def test_a_time_of_another_year_is_refused_and_one_of_a_clock_that_is_ahead_is_taken(
    api: Api,
) -> None:
    now = datetime.now(UTC)
    ahead = [
        _line("CN1", f"e-{hours}", occurred_at=(now + timedelta(hours=hours)).isoformat())
        for hours in (20, 365 * 24)
    ]
    taken, refused = (await post(api, *ahead)).body["results"]
    assert taken["verdict"] == "appended"
    (error,) = refused["errors"]
    assert (error["pointer"], "is the year right" in error["detail"]) == ("/occurred_at", True)
    assert await counts(api) == [1, 0, 1, 1, 1]


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
    api: Api, member: dict[str, Any], pointer: str, proposal: str | None
) -> None:
    line, one = _line(**member), "application/json"
    refused = await post(api, line, content_type=one, strict=True)
    assert (refused.status, refused.headers["Preference-Applied"]) == (422, "handling=strict")
    meant = f"; did you mean `{proposal}`?" if proposal else ""
    told = {"pointer": f"/body{pointer}", "detail": f"is no member of it{meant}"}
    assert [told.items() <= error.items() for error in refused.body["errors"]] == [True]
    assert (await post(api, line, strict=True)).body["results"][0]["verdict"] == "invalid"
    assert await counts(api) == [0, 0, 0, 0, 0], "nothing was applied"

    taken = await post(api, line, content_type=one)
    assert (taken.status, "Preference-Applied" in taken.headers) == (201, False)
    assert taken.body["warnings"] == [{"pointer": f"/body{pointer}", "proposal": proposal}]
    again = (await post(api, line)).body["results"]
    warning = {"pointer": pointer, "proposal": proposal}
    assert again == [{"line": 1, "verdict": "duplicate", "warnings": [warning]}]
