"""Evidence of a shipment for a case: a form for the merchant's statement, and the file."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from aiohttp import web

from statesvc.addons.console.pages import attachment
from statesvc.addons.console.screen import Input, PageRequest, Redirect, Screen, Values
from statesvc.addons.console.shipment_screens import CALL, LIST, ONE, RequestedShipment
from statesvc.http.document_forms import FORMS
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.shipments.plain_names import carrier_name

PATH: Final = ONE + "/evidence"
TEMPLATE: Final = "shipment_evidence.html"
_NAMES: Final = {
    ".pdf": "PDF, to be read: at most 18 pages",
    ".zip": "Zip: PDF, JSON and a verifier that needs nothing but Python",
    ".json": "JSON with all proofs",
    ".html": "HTML page",
}
# The cookie with the merchant that was stated last.
_MERCHANT: Final = "statesvc_merchant"
_MERCHANT_BYTES_MAX: Final = 2000
_REMEMBERED_SECONDS: Final = 365 * 86_400
_ODD: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePreset:
    """The form of a network or processor for a dispute (docs/disputes.md).

    `wanted`: names of its fields, opened and marked. `upload`: the place to send the file to.
    """

    name: str
    reason_code: str
    wanted: frozenset[str]
    upload: str


_ADDRESS: Final = frozenset(
    {"ship_to.name", "ship_to.line1", "ship_to.city", "ship_to.postal_code", "ship_to.country"}
)
PRESETS: Final[Mapping[str, EvidencePreset]] = {
    "stripe": EvidencePreset(
        name="Stripe",
        reason_code="",
        wanted=_ADDRESS | {"customer.name", "customer.email", "order.description"},
        upload=(
            "Upload the PDF with purpose dispute_evidence: its id is shipping_documentation. The"
            " JSON has the rest under stripe."
        ),
    ),
    "visa": EvidencePreset(
        name="Visa 13.1",
        reason_code="13.1",
        wanted=_ADDRESS
        | {
            "order.number",
            "order.description",
            "order.placed_on",
            "merchant.name",
            "merchant.descriptor",
        },
        upload=(
            "Hand the PDF to your acquirer as the response to the dispute, with the date that you"
            " had agreed on."
        ),
    ),
    "mastercard": EvidencePreset(
        name="Mastercard 4855",
        reason_code="4855",
        wanted=_ADDRESS | {"order.number", "order.description", "customer.name", "merchant.name"},
        upload=(
            "Hand the PDF, which has at most 18 pages, to your acquirer as the second presentment,"
            " with your explanation."
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class FieldGroup:
    """Inputs under a heading.

    Those of a group with a `member` go into this member of the statement.
    """

    heading: str
    member: str
    inputs: Sequence[Input]

    @property
    def names(self) -> Sequence[str]:
        return [field_name(self, each) for each in self.inputs]


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


async def show_form(visit: PageRequest) -> Mapping[str, Any] | Redirect | web.Response:
    """Show the form, as of the time of the shipment's page, with the merchant stated last.

    Filled in, it answers the file.
    """
    if visit.posted:
        return await _make(visit, visit.posted)
    asked = RequestedShipment.of(visit)
    preset = visit.query("for")
    if asked.discriminator is None and (named := await _named(visit, asked)) is not None:
        return Redirect(replace(asked, discriminator=named).path("/evidence"))
    reason_code = PRESETS[preset].reason_code if preset in PRESETS else ""
    return _form(
        asked,
        {
            **_remembered(visit),
            "as_of": asked.as_of_field,
            "preset": preset,
            "reason_code": reason_code,
        },
    )


async def _named(visit: PageRequest, asked: RequestedShipment) -> str | None:
    """Return the discriminator of the open page's parcel if others bear its number."""
    try:
        shipment = await visit.call_api(f"GET {CALL}", **asked.given())
    except Problem as problem:
        if problem.code is not Code.NOT_FOUND:
            raise
        return None
    return str(shipment["discriminator"]) if shipment["others"] else None


def _remembered(visit: PageRequest) -> dict[str, str]:
    """Return the merchant that this browser stated last."""
    stated = dict(parse_qsl(visit.request.cookies.get(_MERCHANT, "")))
    return {name: text for name, text in stated.items() if name.startswith("merchant.")}


async def _make(visit: PageRequest, values: Values) -> Mapping[str, Any] | web.Response:
    """Return the file; or the form again, with its errors."""
    asked = RequestedShipment.of(visit)
    end = values.get("form", ".pdf")
    if end not in FORMS:
        raise Problem(Code.INVALID_REQUEST, f"`form` is one of {', '.join(FORMS)}")
    part = "annex" if values.get("annex") == "1" else "document"
    try:
        content = await visit.fetch(
            f"POST {CALL}/evidence",
            _statement(values),
            accept=FORMS[end],
            **asked.given(),
            part=part,
        )
    except Problem as problem:
        if problem.code not in {
            Code.INVALID_REQUEST,
            Code.CONFLICT,
            Code.NOT_FOUND,
            Code.OVERLOADED,
            Code.TOO_MANY_REQUESTS,
        }:
            raise
        errors = [
            f"{each.pointer.removeprefix('/body/')}: {each.detail}" for each in problem.violations
        ] or [problem.detail]
        return {**_form(asked, values), "errors": errors}
    stem = "annex" if part == "annex" else "evidence"
    name = _ODD.sub("-", f"{stem}-{asked.carrier_id}-{asked.tracking_number}")[:100]
    made = attachment(content, FORMS[end], name + end)
    merchant = urlencode(
        {
            name: text
            for name, text in values.items()
            if name.startswith("merchant.") and text.strip()
        }
    )
    if merchant and len(merchant) <= _MERCHANT_BYTES_MAX:
        is_secure = visit.request.secure
        made.set_cookie(
            _MERCHANT,
            merchant,
            max_age=_REMEMBERED_SECONDS,
            path=LIST,
            httponly=True,
            samesite="Strict",
            secure=is_secure,
        )
    return made


def _form(asked: RequestedShipment, values: Values) -> dict[str, Any]:
    return {
        "title": f"Evidence of {carrier_name(asked.carrier_id)} {asked.tracking_number}",
        "asked": asked,
        "groups": GROUPS,
        "forms": _NAMES,
        "presets": PRESETS,
        "preset": PRESETS.get(values.get("preset", "")),
        "values": values,
        "errors": [],
    }


def _statement(values: Values) -> dict[str, Any]:
    statement: dict[str, Any] = {}
    for group in GROUPS:
        filled = {
            each.name: text
            for each in group.inputs
            if (text := values.get(field_name(group, each), "").strip())
        }
        if not group.member:
            statement |= filled
        elif filled:
            statement[group.member] = filled
    return statement


def field_name(group: FieldGroup, each: Input) -> str:
    return f"{group.member}.{each.name}" if group.member else each.name


def evidence_pages() -> list[Screen]:
    about: dict[str, Any] = {"scope": Scope.AUDIT, "personal": Scope.AUDIT, "reason": "case"}
    return [
        Screen(
            path=PATH, title="Evidence", template=TEMPLATE, show=show_form, section=LIST, **about
        )
    ]
