"""An event of a shipment: our reading, and the proof of the log entry."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from events.merkle.checkpoint import read_checkpoint
from events.merkle.proof import verify_inclusion
from statesvc.addons.console.formats import heading
from statesvc.addons.console.screen import PageRequest, Screen
from statesvc.addons.console.shipment_lines import timeline_lines
from statesvc.addons.console.shipment_screens import CALL, LIST, ONE, RequestedShipment
from statesvc.http.inner_calls import Json
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.http.views import Block, Column, Details, Line, Passage, draw
from statesvc.shipments.plain_names import carrier_name

PATH: Final = ONE + "/events/{version}"
# Members of an event that only locate others, and are not from the carrier.
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


_HOLDS: Final = (
    "The path leads from this event's hash to the signed root: it is in the log, as it was when the"
    " root was signed."
)
_FAILS: Final = (
    "The path does not lead to the signed root: this event is not the one that was signed."
)
_NOT_SEALED: Final = Line("It is not sealed yet: within a second it is, if a sealer runs.")
_FACTS: Final = Details(
    Column("happened"),
    Column(lambda event: event["occurred_at_raw"] or "not at all", "Printed"),
    Column("received_at", "Came in"),
    Column("recorded_at", "Known"),
    Column("message_id", "What the carrier sent", link="/console/messages/{message_id}"),
    Column("{normalizer}, version {normalizer_version}", "Read by"),
)
_PROOF: Final = Details(
    Column("{index:,} of {tree_size:,}", "Entry"),
    Column("sealed_at", "Sealed"),
    Column("leaf_hash", "Leaf hash"),
    Column("previous_hash", "Hash of the event before"),
    Column("body_commitment", "Commitment of the body"),
    Column("part_commitment", "Commitment of the personal part"),
    "root",
)


async def show_event(visit: PageRequest) -> Mapping[str, Any]:
    """Show the event; personal values are masked unless the visitor says why."""
    asked = RequestedShipment.of(visit)
    event = await _event(visit, asked)
    line = timeline_lines([event])[0]
    stated = {name: value for name, value in event.items() if name not in _PLACED}
    canonical = orjson.dumps(stated, option=orjson.OPT_INDENT_2).decode()
    number = f"{carrier_name(asked.carrier_id)} {asked.tracking_number}"
    said = f"{line.what}, {line.where}" if line.where else line.what
    return {
        "title": f"Event {event['version']} of {number}",
        "crumb": (f"{asked.path()}#event-{event['version']}", number, said),
        "masked": "" if visit.include else "Personal values of the event are masked.",
        "form_path": asked.path(f"/events/{event['version']}"),
        "blocks": [
            *draw(_FACTS, {**event, "happened": line.happened}),
            Passage(title="What we made of it", lines=canonical),
            heading("Proof"),
            *await _proof(visit, event),
        ],
    }


async def _event(visit: PageRequest, asked: RequestedShipment) -> Json:
    wanted, cursor = visit.path("version"), None
    while True:
        audit = await visit.call_api(
            f"GET {CALL}/audit", **asked.given(), include=visit.include, cursor=cursor
        )
        event = next((each for each in audit["events"] if str(each["version"]) == wanted), None)
        cursor = audit["next_cursor"]
        if event is not None:
            return event
        if cursor is None:
            raise Problem(Code.NOT_FOUND, "the shipment has no such event")


async def _proof(visit: PageRequest, event: Mapping[str, Any]) -> list[Block]:
    """Return the path to the newest signed root, walked here once more."""
    if event["log_index"] is None:
        return [_NOT_SEALED]
    try:
        proof = await visit.call_api("GET /v1/proofs/inclusion", index=event["log_index"])
    except Problem as problem:
        if problem.code not in {Code.NOT_SEALED, Code.NOT_FOUND}:
            raise
        return [_NOT_SEALED]
    holds = verify_inclusion(
        bytes.fromhex(event["leaf_hash"]),
        index=proof["index"],
        size=proof["tree_size"],
        path=[bytes.fromhex(node) for node in proof["path"]],
        root=read_checkpoint(proof["checkpoint"]).root,
    )
    return [
        Line(_HOLDS) if holds else Line(_FAILS, is_refusal=True),
        *draw(_PROOF, {**event, **proof}),
        Passage(title="Path", lines="\n".join(proof["path"])),
        Passage(title="Signed head", lines=proof["checkpoint"]),
    ]


def event_pages() -> list[Screen]:
    about: dict[str, Any] = {"scope": Scope.AUDIT, "personal": Scope.PII, "section": LIST}
    return [Screen(path=PATH, title="Event", show=show_event, **about)]
