"""Forms for codes: map one, take a mapping back, have its history read again."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from statesvc.addons.console.operation_forms import inputs_of, stated_in
from statesvc.addons.console.progress_page import WorkProgress, next_part
from statesvc.addons.console.screen import (
    Done,
    DryRun,
    FormAction,
    Input,
    PageRequest,
    Shown,
    Values,
)
from statesvc.api.code_mapping_models import TaughtMeaning, TeachRequest
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.http.views import counted

CARRIER: Final = "/console/carriers/{carrier_id}"
MAPPING: Final = CARRIER + "/mappings/{revision}"
_PARTS: Final = ("raw_type", "raw_code", "raw_reason", "raw_text")
_MAPPINGS: Final = "/v1/carriers/{carrier_id}/mappings"


def code_in_words(code: Mapping[str, Any]) -> str:
    """Join type, code and reason as histories do."""
    return "/".join(code[name] for name in _PARTS[:3] if code.get(name))


async def _teach_inputs(visit: PageRequest) -> Sequence[Input]:
    return [
        *inputs_of(TeachRequest, *_PARTS, values=visit.request.query),
        *inputs_of(
            TaughtMeaning, "kind", "status", "reason", values=visit.request.query, left_out="none"
        ),
        Input(
            name="force",
            label="Where no event has the code",
            options=[("", "refuse it"), ("yes", "map it all the same")],
        ),
    ]


def _taught(values: Values) -> dict[str, Any]:
    meaning = {
        "kind": values.get("kind") or "scan",
        **stated_in(values, TaughtMeaning, "status", "reason"),
    }
    return {**stated_in(values, TeachRequest, *_PARTS), "meaning": meaning}


async def _would_teach(visit: PageRequest, values: Values) -> DryRun:
    return await _preview(visit, _taught(values), needs_events=not values.get("force"))


async def _preview(
    visit: PageRequest, wanted: Mapping[str, Any], *, needs_events: bool = False
) -> DryRun:
    found = await visit.call_api(
        f"POST {_MAPPINGS}/preview", wanted, carrier_id=visit.path("carrier_id")
    )
    least = "At least " if found["counts_capped"] else ""
    events, shipments, messages = (
        counted(found[name], name.removesuffix("s")) for name in ("events", "shipments", "messages")
    )
    sentences = [
        f"{least}{events} of {shipments}, from {messages}, have the code.",
        "Workers read it so from their next claim on. Older events keep their reading until the history is read again.",
    ]
    if found["in_effect"] is not None:
        sentences.append(
            f"It replaces the mapping in effect: {_meaning_in_words(found['in_effect'])}."
        )
    return DryRun(
        sentences=sentences,
        hidden={"replaces": str(found["replaces"]), "total": str(found["messages"])},
        columns=("Newest shipments", "Code", "Happened"),
        rows=[
            (each["tracking_number"], code_in_words(each), each["occurred_at"])
            for each in found["samples"]
        ],
        refusal="No event has this code: a code is compared as it is written."
        if needs_events and not found["events"]
        else None,
    )


async def _teach(visit: PageRequest, values: Values) -> Done:
    order = {
        **_taught(values),
        "why": values["why"],
        "replaces": values.get("replaces") or None,
        "force": bool(values.get("force")),
    }
    row = await visit.call_api(f"POST {_MAPPINGS}", order, carrier_id=visit.path("carrier_id"))
    then = MAPPING.format(carrier_id=row["carrier_id"], revision=row["revision"])
    return Done(
        sentence=f"Mapping {row['revision']} is in effect. Its history is not read again yet.",
        then=then,
    )


async def _row(visit: PageRequest) -> Mapping[str, Any]:
    """Return the row that the path names, with its text where it is about one: only the text itself can name it to the API."""
    asked = {"carrier_id": visit.path("carrier_id"), "revision": visit.path("revision")}
    row = _of_revision(
        await visit.call_api(f"GET {_MAPPINGS}/{{revision}}", **asked), asked["revision"]
    )
    if row["raw_text"] is None:
        return row
    if not visit.has(Scope.PII):
        raise Problem(
            Code.INVALID_REQUEST,
            "it is a mapping of a text, which is sealed: log in with a key that has the scope `pii` too",
        )
    with_texts = await visit.call_api(f"GET {_MAPPINGS}/{{revision}}", **asked, include="personal")
    row = _of_revision(with_texts, asked["revision"])
    return {**row, "raw_text": row["texts"][row["raw_text"]]}


def _of_revision(rows: Mapping[str, Any], revision: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(
        row for row in rows["items"] if row["revision"] == int(revision)
    )
    return found


async def _would_take_back(visit: PageRequest, _values: Values) -> DryRun:
    row = await _row(visit)
    would = await _preview(visit, {**{name: row[name] for name in _PARTS}, "meaning": None})
    refusal = None if row["meaning"] is not None else "This row took a mapping back already."
    return DryRun(
        sentences=[
            "The normalizer reads the code again, as this release's table says.",
            *would.sentences,
        ],
        hidden=would.hidden,
        columns=would.columns,
        rows=would.rows,
        refusal=refusal,
    )


async def _take_back(visit: PageRequest, values: Values) -> Done:
    row = await _row(visit)
    order = {
        **{name: row[name] for name in _PARTS},
        "meaning": None,
        "why": values["why"],
        "replaces": values.get("replaces") or None,
    }
    made = await visit.call_api(f"POST {_MAPPINGS}", order, carrier_id=row["carrier_id"])
    then = MAPPING.format(carrier_id=row["carrier_id"], revision=made["revision"])
    return Done(sentence="The mapping is taken back. Its history is not read again yet.", then=then)


async def _would_reread(visit: PageRequest, _values: Values) -> DryRun:
    row = await _row(visit)
    return await _preview(visit, {name: row[name] for name in _PARTS} | {"meaning": row["meaning"]})


async def _reread(visit: PageRequest, values: Values) -> Shown:
    whose = {"carrier_id": visit.path("carrier_id"), "revision": visit.path("revision")}
    progress, answer = await next_part(
        visit, f"POST {_MAPPINGS}/{{revision}}/renormalize", {"why": values["why"]}, values, **whose
    )
    sums = progress.sums
    sentences = [
        f"Read again: {counted(sums['messages'], 'message')}.",
        f"Events corrected: {sums['corrected']:,}; added: {sums['added']:,}; taken back: {sums['retracted']:,}.",
        f"Changes of status: {sums['transitions']:,}; notifications: {sums['notifications']:,}.",
    ]
    if sums["unreadable"]:
        sentences.append(
            f"Left as on record: {counted(sums['unreadable'], 'event')}, whose messages are gone."
        )
    if answer["done"] and answer["dead_letter_id"] is not None:
        is_open = answer["obstacle"] is not None
        sentences.append(
            f"Dead letter {answer['dead_letter_id']} {'stays open: ' + answer['obstacle'] if is_open else 'is settled'}."
        )
    return WorkProgress(
        progress=progress,
        sentences=sentences,
        order={},
        then=MAPPING.format_map(whose),
        then_label="To the mapping",
    ).page


def _meaning_in_words(meaning: Mapping[str, Any]) -> str:
    said = meaning["status"] or meaning["kind"]
    return f"{said}, {meaning['reason']}" if meaning["reason"] else f"{said}"


def teaching_actions() -> list[FormAction]:
    about: dict[str, Any] = {"scope": Scope.OPS, "section": "/console/carriers"}
    return [
        FormAction(
            path=CARRIER + "/teach",
            title="Map a code of {carrier_id}",
            button="Map it",
            inputs=_teach_inputs,
            dry_run=_would_teach,
            carry_out=_teach,
            back=CARRIER,
            **about,
        ),
        FormAction(
            path=MAPPING + "/take-back",
            title="Take mapping {revision} back",
            button="Take it back",
            dry_run=_would_take_back,
            carry_out=_take_back,
            back=MAPPING,
            **about,
        ),
        FormAction(
            path=MAPPING + "/renormalize",
            title="Read the history of mapping {revision} again",
            button="Read it again",
            dry_run=_would_reread,
            carry_out=_reread,
            back=MAPPING,
            **about,
        ),
    ]
