"""Teaching on the console: the events of a code, its mappings, its history read again."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from events.carriers import CARRIERS
from statesvc.addons.console.screen import (
    FormAction,
    PageRequest,
    PersonalDataRequest,
    Screen,
    Shown,
    Values,
)
from statesvc.addons.console.teaching_forms import CARRIER, MAPPING, code_in_words, teaching_actions
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem

CODE: Final = CARRIER + "/code"
_SAMPLES: Final = 20


async def show_code(visit: PageRequest) -> Mapping[str, Any]:
    """Show events with one unknown code, without their texts."""
    return await _code(visit, {name: visit.query(name) for name in ("raw_type", "raw_code")})


async def _show_texts(visit: PageRequest, values: Values) -> Shown:
    """Show the events with what the carrier printed."""
    return Shown("code.html", await _code(visit, values, include="personal"))


async def _code(
    visit: PageRequest, values: Values, *, include: str | None = None
) -> Mapping[str, Any]:
    carrier_id = _carrier_id(visit)
    code = {name: values[name] for name in ("raw_type", "raw_code") if values.get(name)}
    found = await visit.call_api(
        "GET /v1/unmapped-codes/samples",
        carrier_id=carrier_id,
        **code,
        limit=_SAMPLES,
        include=include,
    )
    mapped = await visit.call_api(
        "GET /v1/carriers/{carrier_id}/mappings", carrier_id=carrier_id, limit=200
    )
    named = (code.get("raw_type"), code.get("raw_code"))
    return {
        "title": f"Code {code_in_words(code) or 'none'} of {CARRIERS[carrier_id].name}",
        "carrier_id": carrier_id,
        "code": code,
        "teach_query": urlencode(code),
        "is_text": "text" in code.values(),
        "samples": [(sample, urlencode(_parts(sample))) for sample in found["items"]],
        "shows_texts": include is not None,
        "mappings": [row for row in mapped["items"] if (row["raw_type"], row["raw_code"]) == named],
    }


def _parts(sample: Mapping[str, Any]) -> dict[str, str]:
    """Return what the form that maps it begins with."""
    code = {
        name: sample[name]
        for name in ("raw_type", "raw_code", "raw_reason")
        if sample[name] is not None
    }
    meant = sample["proposed"] or {}
    return code | {name: meant[name] for name in ("status", "reason") if meant.get(name)}


async def show_mapping(visit: PageRequest) -> Mapping[str, Any]:
    """Show one row, and what came before and after it."""
    carrier_id = _carrier_id(visit)
    rows = await visit.call_api(
        "GET /v1/carriers/{carrier_id}/mappings/{revision}",
        carrier_id=carrier_id,
        revision=visit.path("revision"),
    )
    revision = int(visit.path("revision"))
    return {
        "title": f"Mapping {revision} of {CARRIERS[carrier_id].name}",
        "carrier_id": carrier_id,
        "row": next(row for row in rows["items"] if row["revision"] == revision),
        "latest": rows["items"][0],
        "rows": rows["items"],
        "code_in_words": code_in_words,
    }


def _carrier_id(visit: PageRequest) -> str:
    carrier_id = visit.path("carrier_id")
    if carrier_id not in CARRIERS:
        raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; the list of carriers has them")
    return carrier_id


def teaching_pages() -> tuple[list[Screen], list[FormAction], list[PersonalDataRequest]]:
    about: dict[str, Any] = {"scope": Scope.OPS, "section": "/console/carriers"}
    personal: dict[str, Any] = {**about, "scope": Scope.PII}
    return (
        [
            Screen(path=CODE, title="Code", template="code.html", show=show_code, **about),
            Screen(
                path=MAPPING, title="Mapping", template="mapping.html", show=show_mapping, **about
            ),
        ],
        teaching_actions(),
        [
            PersonalDataRequest(path=CODE, title="Code", disclose=_show_texts, **personal),
        ],
    )
