"""An event of a shipment: our reading, and the proof of the log entry."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from events.merkle.checkpoint import read_checkpoint
from events.merkle.proof import verify_inclusion
from statesvc.addons.console.screen import PageRequest, PersonalDataRequest, Screen, Shown, Values
from statesvc.addons.console.shipment_lines import timeline_lines
from statesvc.addons.console.shipment_screens import CALL, LIST, ONE, AskedShipment
from statesvc.http.inner_calls import Json
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.shipments.plain_names import carrier_name

PATH: Final = ONE + "/events/{version}"
_PLACED: Final = frozenset(
    {
        "batch_id",
        "ordinal",
        "leaf_hash",
        "previous_hash",
        "sealed_at",
        "log_index",
        "body_place",
        "erased",
    }
)
"""Members of an event that only locate others, and are not from the carrier."""


async def show_event(visit: PageRequest) -> Mapping[str, Any]:
    """Show the event with everything personal masked."""
    return await _event_page(visit, include=None)


async def disclose_event(visit: PageRequest, _values: Values) -> Shown:
    """Show the event with personal values, which the API records."""
    return Shown("shipment_event.html", await _event_page(visit, include="personal"))


async def _event_page(visit: PageRequest, include: str | None) -> dict[str, Any]:
    asked = AskedShipment.of(visit)
    event = await _event(visit, asked, include)
    return {
        "title": f"Event {event['version']} of {carrier_name(asked.carrier_id)} {asked.tracking_number}",
        "asked": asked,
        "event": event,
        "line": timeline_lines([event])[0],
        "canonical": orjson.dumps(
            {name: value for name, value in event.items() if name not in _PLACED},
            option=orjson.OPT_INDENT_2,
        ).decode(),
        "personal": include is not None,
        "proof": None if event["log_index"] is None else await _proof(visit, event),
    }


async def _event(visit: PageRequest, asked: AskedShipment, include: str | None) -> Json:
    wanted, cursor = visit.path("version"), None
    while True:
        audit = await visit.call_api(
            f"GET {CALL}/audit", **asked.given(), include=include, cursor=cursor
        )
        event = next((each for each in audit["events"] if str(each["version"]) == wanted), None)
        cursor = audit["next_cursor"]
        if event is not None:
            return event
        if cursor is None:
            raise Problem(Code.NOT_FOUND, "the shipment has no such event")


async def _proof(visit: PageRequest, event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the path to the newest signed root, walked here once more."""
    try:
        proof = await visit.call_api("GET /v1/proofs/inclusion", index=event["log_index"])
    except Problem as problem:
        if problem.code not in {Code.NOT_SEALED, Code.NOT_FOUND}:
            raise
        return None
    holds = verify_inclusion(
        bytes.fromhex(event["leaf_hash"]),
        index=proof["index"],
        size=proof["tree_size"],
        path=[bytes.fromhex(node) for node in proof["path"]],
        root=read_checkpoint(proof["checkpoint"]).root,
    )
    return {**proof, "holds": holds}


def event_pages() -> tuple[list[Screen], list[PersonalDataRequest]]:
    return (
        [
            Screen(
                path=PATH,
                title="Event",
                template="shipment_event.html",
                scope=Scope.AUDIT,
                show=show_event,
                section=LIST,
            )
        ],
        [
            PersonalDataRequest(
                path=PATH, title="Event", scope=Scope.PII, disclose=disclose_event, section=LIST
            )
        ],
    )
