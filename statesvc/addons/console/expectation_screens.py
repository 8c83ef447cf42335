"""Screens of expectations: the hours of all carriers, a carrier, or a service.

And the form for them.
"""

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
)
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.http.views import draw
from statesvc.shipments.rule_hours import NEVER, named_hours, rules_of

LIST: Final = "/console/expectations"
_OF_CARRIER: Final = LIST + "/{carrier_id}/change"
_OF_SERVICE: Final = LIST + "/{carrier_id}/services/{service}/change"
_CALL: Final = "/v1/expectations/{carrier_id}"
_EVERYONE: Final = "*"
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
"""By the names of `named_hours`, in the order of a parcel's way."""


async def show_rules(visit: PageRequest) -> Mapping[str, Any]:
    """Show all stated rules, the widest first."""
    found = await visit.call_api("GET /v1/expectations")
    rows = []
    for each in found["items"]:
        stated, effective = dict(named_hours(each["stated"])), dict(named_hours(each["in_effect"]))
        path = change_path(each["carrier_id"], each["service"])
        rows.append(
            {**each, "path": path, "cells": [(effective[name], name in stated) for name in LABELS]}
        )
    return {
        "rows": rows,
        "labels": list(LABELS.values()),
        "carriers": sorted(CARRIERS),
        "everyone": _EVERYONE,
    }


async def to_form(visit: PageRequest) -> Redirect:
    return Redirect(
        change_path(visit.query("carrier_id") or _EVERYONE, visit.query("service").strip() or None)
    )


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
        (label, str(now[name]), str(then[name]))
        for name, label in LABELS.items()
        if now[name] != then[name]
    ]
    return DryRun(
        blocks=draw(visit.calls.view(f"POST {_CALL}/preview"), would),
        sentences=["Those that wait follow from a minute later."],
        hidden={"replaces": str(would["replaces"])},
        columns=("Hours", "Now", "Then"),
        rows=rows,
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
    return (
        [
            Screen(
                path=LIST,
                title="Expectations",
                template="expectations.html",
                show=show_rules,
                menu="Expectations",
                group=MenuGroup.PARCELS,
                **about,
            ),
            Screen(
                path=LIST + "/choose",
                title="Expectations",
                template="expectations.html",
                show=to_form,
                **about,
            ),
        ],
        [
            FormAction(path=_OF_CARRIER, title="What is expected of {carrier_id}", **stating),
            FormAction(
                path=_OF_SERVICE, title="What is expected of {carrier_id}, {service}", **stating
            ),
        ],
    )
