from typing import Any

from events.vocabulary import Kind, Status
from statesvc.repair.dead_letters.dead_letter import DeadLetter
from statesvc.repair.dead_letters.listing import DeadLetterDetails


async def bury(api: Any, *causes: str, carrier_id: str = "ups") -> None:
    for cause in causes:
        await api.carriers.execute(
            "INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at, message_id,"
            " detail) VALUES ('message', %s, %s, statesvc.clock(), gen_random_uuid(), 'at line 1')",
            [cause, carrier_id],
        )


async def test_lists_the_newest_first_by_filter(api: Any) -> None:
    await bury(api, "unreadable", "unknown_format", "unreadable")
    await bury(api, "unreadable", carrier_id="fedex")
    await api.carriers.execute(
        "UPDATE statesvc.dead_letter SET resolved_at = statesvc.clock(), resolution = 'discarded',"
        " resolved_by = 'me', why = 'a test' WHERE dead_letter_id = 1"
    )

    async def ids(**query: str) -> list[int]:
        (page,) = await api.pages("/v1/dead-letters", scopes="ops", **query)
        for item in page:
            DeadLetter.model_validate(item)
        return [item["dead_letter_id"] for item in page]

    assert await ids() == [4, 3, 2, 1]
    assert await ids(open="true") == [4, 3, 2]
    assert await ids(open="false") == [1]
    assert await ids(cause="unreadable", carrier_id="ups") == [3, 1]
    assert await ids(kind="code") == []
    unknown = await api.get("/v1/dead-letters", scopes="ops", params={"cause": "bad_luck"})
    assert (unknown.status, unknown.body["code"]) == (422, "invalid_request")


async def test_an_unknown_code_is_one_dead_letter_with_the_counts_of_the_log(
    api: Any, scan: Any
) -> None:
    unmapped: dict[str, Any] = {"kind": Kind.UNMAPPED, "type": "Q", "code": "77"}
    first = await api.carriers.push(
        scan("1", None, **unmapped), scan("1", None, minutes=1, **unmapped)
    )
    second = await api.carriers.push(scan("2", None, minutes=2, **unmapped))
    await api.carriers.push(scan("2", None, minutes=3, kind=Kind.UNMAPPED, type="Q", code="771"))
    await api.carriers.push(scan("2", None, minutes=4, kind=Kind.UNMAPPED, type="Q/77", code=None))
    dead_letters = (await api.get("/v1/dead-letters", scopes="ops", params={"kind": "code"})).body[
        "items"
    ]
    (dead_letter_id,) = [
        each["dead_letter_id"]
        for each in dead_letters
        if (each["raw_type"], each["raw_code"]) == ("Q", "77")
    ]
    shown = (await api.get(f"/v1/dead-letters/{dead_letter_id}", scopes="ops")).body
    DeadLetterDetails.model_validate(shown)
    assert shown["message_id"] == str(first)
    assert shown["occurrences"] == {
        "events": 3,
        "shipments": 2,
        "counts_capped": False,
        "message_ids": [str(second), str(first)],
    }


async def test_a_code_with_a_reason_and_one_without_any_code_are_counted(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(
        scan("3", None, kind=Kind.UNMAPPED, type=None, code=None, description="Something")
    )
    await api.carriers.push(scan("3", Status.IN_TRANSIT, type=None, code=None, minutes=1))
    (dead_letter,) = (
        await api.get("/v1/dead-letters", scopes="ops", params={"kind": "code"})
    ).body["items"]
    shown = (await api.get(f"/v1/dead-letters/{dead_letter['dead_letter_id']}", scopes="ops")).body
    assert shown["occurrences"]["events"] == 1


async def test_a_message_has_no_occurrences_and_a_missing_dead_letter_is_a_problem(
    api: Any,
) -> None:
    await bury(api, "unreadable")
    assert (await api.get("/v1/dead-letters/1", scopes="ops")).body["occurrences"] is None
    missing = await api.get("/v1/dead-letters/99", scopes="ops")
    assert (missing.status, missing.body["code"]) == (404, "not_found")
    assert (await api.get("/v1/dead-letters/first", scopes="ops")).status == 422
