"""Erasure of a person leaves nothing to find: in no answer, for no key, in no table,
and after no later push.
"""

from dataclasses import replace
from typing import Any

from psycopg import AsyncConnection

from events.carriers import CARRIERS
from events.event import EventPlace, Raw
from events.vocabulary import Kind, Status

NAME, LANE, ZIP, HANDED = "Zebedee Quux", "Zanzibar Lane 77", "89501-7777", "Handed to Zebedee Quux"
WORDS = (NAME, LANE, ZIP, HANDED)
SCOPES = ("read", "read audit", "read audit pii ops")
PATHS = (
    "/v1/shipments/ups/1",
    "/v1/shipments/ups/1/history",
    "/v1/shipments/ups/1/audit",
    "/v1/shipments",
    "/v1/feed",
    "/v1/dead-letters",
    "/v1/dead-letters/1",
)
PLACE = EventPlace(city="Reno", region="NV", postal_code=ZIP, country="US")


def delivered(scan: Any, minutes: int, **fields: Any) -> Any:
    fields = {
        "place": PLACE,
        "signed_by": NAME,
        "delivery_address": LANE,
        "description": HANDED,
    } | fields
    return scan("1", Status.DELIVERED, minutes=minutes, **fields)


def said_in_place_of_a_code(scan: Any, minutes: int, **fields: Any) -> Any:
    """Build what a carrier writes where its code belongs."""
    stated = scan("1", None, kind=Kind.UNMAPPED, minutes=minutes, place=PLACE, **fields)
    return replace(
        stated, raw=Raw(type="T", code=HANDED, reason=f"{NAME} 2", further=(f"{NAME} 3",))
    )


async def answers(api: Any, scopes: str) -> str:
    """Return all that a key of these scopes is shown."""
    found = []
    for path in PATHS:
        wanted = (
            {"include": "personal"} if "pii" in scopes and path.startswith("/v1/shipments/") else {}
        )
        reply = await api.get(path, scopes=scopes, params=wanted)
        assert reply.status in {200, 403}, (path, reply.body)
        found.append(str(reply.body))
    return "\n".join(found)


async def dump(owner: AsyncConnection[Any]) -> str:
    """Dump every table as `pg_dump` copies it, with binary columns as the bytes that they are."""
    found = []
    tables = (
        "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'statesvc'::regnamespace AND"
        " relkind = 'r'"
    )
    for (table,) in await (await owner.execute(tables)).fetchall():
        async with owner.cursor().copy(f"COPY {table} TO STDOUT (FORMAT binary)".encode()) as rows:
            found.append(b"".join([bytes(block) async for block in rows]))
    return b"".join(found).decode("latin-1")


def words_in(text: str) -> set[str]:
    return {word for word in WORDS if word in text}


async def test_a_key_without_pii_sees_nothing_personal_and_one_with_it_sees_all(
    api: Any, scan: Any, owner: Any
) -> None:
    await api.carriers.push(delivered(scan, 1), said_in_place_of_a_code(scan, 2))
    assert words_in(await dump(owner)) == set(), "in a dump everything personal is sealed"
    assert (
        words_in(await answers(api, "read")) == words_in(await answers(api, "read audit")) == set()
    )
    assert words_in(await answers(api, "read audit pii ops")) == set(WORDS)
    shown = (await api.get("/v1/shipments/ups/1/history")).body["items"]
    assert {item["location"]["postal_code"] for item in shown} == {"895"}
    assert {item["location"]["city"] for item in shown} == {"Reno"}
    personal = (
        await api.get(
            "/v1/shipments/ups/1/history", scopes="read pii", params={"include": "personal"}
        )
    ).body["items"]
    assert {item["location"]["postal_code"] for item in personal} == {ZIP}
    assert personal[1]["carrier_code"] == f"T/{HANDED}/{NAME} 2"
    assert shown[1]["carrier_code"].startswith("T/text-")


async def test_erased_nothing_is_found_for_any_key_nor_after_later_pushes(
    api: Any, scan: Any, owner: Any
) -> None:
    await api.carriers.push(
        delivered(scan, 1),
        said_in_place_of_a_code(scan, 2),
        scan("2", Status.IN_TRANSIT, native_id="N"),
    )
    done = await api.call(
        "POST", "/v1/shipments/ups/1/erase", scopes="admin", json={"why": "asked to"}
    )
    assert done.status == 200

    async def nowhere() -> None:
        for scopes in SCOPES:
            assert words_in(await answers(api, scopes)) == set()
        assert words_in(await dump(owner)) == set()

    await nowhere()
    await api.carriers.push(delivered(scan, 30), said_in_place_of_a_code(scan, 31))
    await api.carriers.push(delivered(scan, 32, native_id="N"))
    await nowhere()
    assert (await api.get("/v1/shipments/ups/1")).body["status"] == "delivered"


async def test_texts_in_the_place_of_codes_make_one_dead_letter_whatever_they_say(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(
        *(
            replace(
                said_in_place_of_a_code(scan, minute), raw=Raw(type="T", code=f"{NAME} {minute}")
            )
            for minute in range(20)
        ),
        scan("1", None, kind=Kind.UNMAPPED, minutes=30, code="Q"),
    )
    listed = dict(
        await api.rows(
            "SELECT raw_code, dead_letter_id FROM statesvc.dead_letter ORDER BY raw_code"
        )
    )
    assert listed.keys() == {"Q", "text"}
    shown = (await api.get(f"/v1/dead-letters/{listed['text']}", scopes="ops")).body
    assert (shown["raw_type"], shown["raw_code"]) == ("T", "text")
    assert shown["occurrences"]["events"] == 20


async def test_a_text_that_the_carrier_s_tables_know_is_shown_to_every_reader(
    api: Any, scan: Any
) -> None:
    # before an erasure and after it: it is the carrier's word, and nobody's name
    known = min(CARRIERS["usps"].texts)
    said = (
        replace(scan("1", Status.IN_TRANSIT, minutes=minute), raw=Raw(code=text))
        for minute, text in ((1, known.title()), (2, f"{HANDED} 2"))
    )
    await api.carriers.push(*said, carrier_id="usps")

    async def codes(call: str, scopes: str, **params: str) -> list[str]:
        body = (await api.get(f"/v1/shipments/usps/1/{call}", scopes=scopes, params=params)).body
        return [event["carrier_code"] for event in body["items" if call == "history" else "events"]]

    for call, scopes in (("history", "read"), ("audit", "audit")):
        shown, other = await codes(call, scopes)
        assert (shown, other[:5]) == (known, "text-")
        assert await codes(call, f"{scopes} pii", include="personal") == [
            known.title(),
            f"{HANDED} 2",
        ]
    assert (
        await api.call(
            "POST", "/v1/shipments/usps/1/erase", scopes="admin", json={"why": "asked to"}
        )
    ).status == 200
    assert (await codes("history", "read pii", include="personal"))[0] == known


async def test_a_number_is_no_truth_value(api: Any) -> None:
    asked = {"why": "asked to", "override_hold": 0}
    refused = await api.call("POST", "/v1/shipments/ups/1/erase", scopes="admin", json=asked)
    assert (refused.status, refused.body["errors"][0]["pointer"]) == (422, "/body/override_hold")
