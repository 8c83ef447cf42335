"""Evidence of a shipment for a case: a form for what the merchant states, and the file that it answers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import hdrs, web

from statesvc.console.screen import Input, PageRequest, PersonalDataRequest, Screen, Shown, Values
from statesvc.console.shipment_screens import CALL, LIST, ONE, AskedShipment
from statesvc.evidence.bundle import FORMS
from statesvc.evidence.dispute_fields import carrier_name
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem

PATH: Final = ONE + "/evidence"
TEMPLATE: Final = "shipment_evidence.html"
_NAMES: Final = {
    ".pdf": "PDF, to be read: at most 18 pages",
    ".zip": "Zip: PDF, JSON and a verifier that needs nothing but Python",
    ".json": "JSON with all proofs",
    ".html": "HTML page",
}
_ODD: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class FieldGroup:
    """Inputs under one heading; those of a group that has a `member` go into this member of the statement."""

    heading: str
    member: str
    inputs: Sequence[Input]


GROUPS: Final = (
    FieldGroup(
        "The case",
        "",
        [
            Input(
                name="case",
                label="Number of the case or dispute",
                is_required=True,
                hint="Stands in the log with your key: no person's name.",
            ),
            Input(name="reason_code", label="The network's reason code", hint="13.1, 4855"),
        ],
    ),
    FieldGroup(
        "Where the order was to go",
        "ship_to",
        [
            Input(name="name", label="Name"),
            Input(name="line1", label="Street"),
            Input(name="line2", label="Second line"),
            Input(name="city", label="City"),
            Input(name="region", label="Region"),
            Input(name="postal_code", label="Postcode"),
            Input(name="country", label="Country", hint="Two capital letters: US, DE"),
        ],
    ),
    FieldGroup(
        "The order",
        "order",
        [
            Input(name="number", label="Number"),
            Input(name="placed_on", label="Placed on", type="date"),
            Input(name="amount", label="Amount", hint="129.90 EUR"),
            Input(name="description", label="Description"),
        ],
    ),
    FieldGroup(
        "The customer",
        "customer",
        [
            Input(name="name", label="Name"),
            Input(name="email", label="E-mail"),
            Input(name="phone", label="Telephone"),
            Input(name="ip_address", label="IP address"),
        ],
    ),
    FieldGroup(
        "The merchant",
        "merchant",
        [
            Input(name="name", label="Name"),
            Input(name="descriptor", label="As the cardholder's statement names it"),
            Input(name="contact", label="Contact"),
        ],
    ),
)


async def show_form(visit: PageRequest) -> Mapping[str, Any]:
    """The empty form, as of the time that the shipment's page showed."""
    asked = AskedShipment.of(visit)
    return _form(asked, {"as_of": asked.as_of_field})


async def make_evidence(visit: PageRequest, values: Values) -> Shown | web.StreamResponse:
    """The file; or the form again, with what is wrong with it."""
    asked = AskedShipment.of(visit).at(values.get("as_of", ""))
    end = values.get("form", ".pdf")
    if end not in FORMS:
        raise Problem(Code.INVALID_REQUEST, f"`form` is one of {', '.join(FORMS)}")
    part = "annex" if values.get("annex") == "1" else "document"
    try:
        content = await visit.fetch(f"POST {CALL}/evidence", _statement(values), accept=FORMS[end], **asked.given(), part=part)
    except Problem as problem:
        if problem.code not in {Code.INVALID_REQUEST, Code.CONFLICT, Code.NOT_FOUND, Code.OVERLOADED, Code.TOO_MANY_REQUESTS}:
            raise
        errors = [f"{each.pointer.removeprefix('/body/')}: {each.detail}" for each in problem.violations] or [problem.detail]
        return Shown(TEMPLATE, {**_form(asked, values), "errors": errors})
    name = _ODD.sub("-", f"{'annex' if part == 'annex' else 'evidence'}-{asked.carrier_id}-{asked.tracking_number}")[:100] + end
    headers = {
        hdrs.CONTENT_DISPOSITION: f'attachment; filename="{name}"',
        hdrs.CACHE_CONTROL: "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return web.Response(body=content, content_type=FORMS[end], headers=headers)


def _form(asked: AskedShipment, values: Values) -> dict[str, Any]:
    return {
        "title": f"Evidence of {carrier_name(asked.carrier_id)} {asked.tracking_number}",
        "asked": asked,
        "groups": GROUPS,
        "forms": _NAMES,
        "values": values,
        "errors": [],
    }


def _statement(values: Values) -> dict[str, Any]:
    """The members that were filled in."""
    statement: dict[str, Any] = {}
    for group in GROUPS:
        filled = {each.name: text for each in group.inputs if (text := values.get(field_name(group, each), "").strip())}
        if not group.member:
            statement |= filled
        elif filled:
            statement[group.member] = filled
    return statement


def field_name(group: FieldGroup, each: Input) -> str:
    """Of an input of the form."""
    return f"{group.member}.{each.name}" if group.member else each.name


def evidence_pages() -> tuple[list[Screen], list[PersonalDataRequest]]:
    """The rows of the tables."""
    return (
        [Screen(path=PATH, title="Evidence", template=TEMPLATE, scope=Scope.AUDIT, show=show_form, section=LIST)],
        [PersonalDataRequest(path=PATH, title="Evidence", scope=Scope.AUDIT, disclose=make_evidence, section=LIST, reason="case")],
    )
