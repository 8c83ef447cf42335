"""Expectations: the hours of all carriers, a carrier, or a service; and the form for them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from events.carriers import CARRIERS
from statesvc.addons.console.screen import (
    Done,
    DryRun,
    FormAction,
    Input,
    MenuGroup,
    PageRequest,
    Redirect,
    Screen,
    Values,
    changes,
)
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.http.views import Column, Line, Table, draw
from statesvc.shipments.rule_hours import NEVER, named_hours, rules_of

LIST: Final = "/console/expectations"
_OF_CARRIER: Final = LIST + "/{carrier_id}/change"
_OF_SERVICE: Final = LIST + "/{carrier_id}/services/{service}/change"
_CALL: Final = "/v1/expectations/{carrier_id}"
_EVERYONE: Final = "*"
# By the names of `named_hours`, in the order of a parcel's way.
LABELS: Final[Mapping[str, str]] = {
    "not_picked_up": "Label, but not picked up",
    "stalled.picked_up": "No scan: picked up",
    "stalled.in_transit": "No scan: in transit",
    "stalled.exception": "No scan: exception",
    "stalled.out_for_delivery": "No scan: out for delivery",
    "stalled.delivery_attempted": "No scan: delivery attempted",
    "stalled.returning": "No scan: returning",
    "pickup_expiring": "Waiting to be picked up",
    "delivery_missed": "Out for delivery, and the day is over",
    "overdue": "The promised day is over",
}


_RULES: Final = Table(
    Column(
        lambda row: _whose_words(row["carrier_id"], row["service"]),
        "Of",
        link=lambda row: change_path(row["carrier_id"], row["service"]),
    ),
    Column(
        lambda row: _hours_words(row["in_effect" if row["carrier_id"] == _EVERYONE else "stated"]),
        "Hours",
    ),
    Column(lambda row: row["changed_at"] or "our defaults", "Stated"),
    Column("changed_by", "By"),
    "why",
    Column(lambda row: "" if row["applied"] else "shipments that wait follow", "Applied"),
)


def _whose_words(carrier_id: str, service: str | None) -> str:
    whose = "all carriers" if carrier_id == _EVERYONE else carrier_id
    return f"{whose}: {service}" if service else whose


def _hours_words(rules: Mapping[str, Any]) -> str:
    hours = dict(named_hours(rules))
    return "; ".join(
        f"{label} {hours[name]}" + " h" * (hours[name] != NEVER)
        for name, label in LABELS.items()
        if name in hours
    )


async def show_rules(visit: PageRequest) -> Mapping[str, Any] | Redirect:
    """Show all stated rules, the widest first; `carrier_id` and `service` lead to their form."""
    if chosen := visit.query("carrier_id"):
        return Redirect(change_path(chosen, visit.query("service").strip() or None))
    found = await visit.call_api("GET /v1/expectations")
    carriers = [(_EVERYONE, "all"), *((name, name) for name in sorted(CARRIERS))]
    service = "As the carrier names it; case and blanks do not matter. Empty: all of them."
    inputs = [
        Input(name="carrier_id", label="Carrier", options=carriers),
        Input(name="service", label="Service", hint=service),
    ]
    return {
        "inputs": inputs if visit.may_change(Scope.OPS) else [],
        "button": "State hours",
        "blocks": [
            Line(
                "Hours until it is observed that something did not happen. What is not stated is"
                " inherited: by a service from its carrier, by a carrier from all, at last from our"
                " defaults."
            ),
            *draw(_RULES, found),
        ],
    }


def change_path(carrier_id: str, service: str | None) -> str:
    """Return the path of the form for other hours."""
    name = "all" if carrier_id == _EVERYONE else carrier_id
    if service is None:
        return _OF_CARRIER.format(carrier_id=quote(name, safe=""))
    return _OF_SERVICE.format(carrier_id=quote(name, safe=""), service=quote(service, safe=""))


def _whose(visit: PageRequest) -> dict[str, Any]:
    return {
        "carrier_id": visit.path("carrier_id"),
        "service": visit.request.match_info.get("service"),
    }


async def _inputs(visit: PageRequest) -> Sequence[Input]:
    found = await visit.call_api(f"GET {_CALL}", **_whose(visit))
    stated, inherited = dict(named_hours(found["stated"])), dict(named_hours(found["inherited"]))
    return [
        Input(
            name=name,
            label=label,
            value=str(stated.get(name, "")),
            hint=f"Hours, or {NEVER}. Empty: {inherited[name]}, as inherited.",
        )
        for name, label in LABELS.items()
    ]


def _rules(values: Values) -> dict[str, Any]:
    """Return the form's statement; an empty field is left out."""
    given = {name: value for name in LABELS if (value := values.get(name, "").strip())}
    return rules_of(
        {
            name: value if value == NEVER else _number(value, LABELS[name])
            for name, value in given.items()
        }
    )


def _number(given: str, label: str) -> int:
    if not given.isascii() or not given.isdigit() or len(given) > 9:
        raise Problem(
            Code.INVALID_REQUEST, f"{label}: give whole hours, `{NEVER}`, or nothing to inherit"
        )
    return int(given)


async def _would_state(visit: PageRequest, values: Values) -> DryRun:
    rules = _rules(values)
    present = await visit.call_api(f"GET {_CALL}", **_whose(visit))
    would = await visit.call_api(f"POST {_CALL}/preview", {"rules": rules}, **_whose(visit))
    now = dict(named_hours(present["in_effect"]))
    then = dict(named_hours(present["inherited"])) | dict(named_hours(rules))
    rows = [
        (label, now[name], then[name]) for name, label in LABELS.items() if now[name] != then[name]
    ]
    return DryRun(
        blocks=[
            *draw(visit.calls.operation(f"POST {_CALL}/preview").view, would),
            Line("Those that wait follow from a minute later."),
            *changes("Hours", rows),
        ],
        hidden={"replaces": str(would["replaces"])},
    )


async def _state(visit: PageRequest, values: Values) -> Done:
    order = {
        "rules": _rules(values),
        "why": values["why"],
        "replaces": values.get("replaces") or None,
    }
    stated = await visit.call_api(f"PUT {_CALL}", order, **_whose(visit))
    return Done(sentence=f"Revision {stated['revision']} is in effect.", then=LIST)


def expectation_pages() -> tuple[list[Screen], list[FormAction]]:
    about: dict[str, Any] = {"scope": Scope.OPS, "section": LIST}
    stating: dict[str, Any] = {
        "button": "State it",
        "inputs": _inputs,
        "dry_run": _would_state,
        "carry_out": _state,
        "back": LIST,
        **about,
    }
    menu: dict[str, Any] = {"menu": "Expectations", "group": MenuGroup.PARCELS}
    return (
        [Screen(path=LIST, title="Expectations", show=show_rules, **menu, **about)],
        [
            FormAction(path=_OF_CARRIER, title="What is expected of {carrier_id}", **stating),
            FormAction(
                path=_OF_SERVICE, title="What is expected of {carrier_id}, {service}", **stating
            ),
        ],
    )
