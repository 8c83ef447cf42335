"""Shipments: search and list."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from markupsafe import Markup

from projections.lifecycle import Flag
from statesvc.addons.console.formats import ago, chip, stated_short, tabs
from statesvc.addons.console.operation_forms import filters_of
from statesvc.addons.console.screen import Input, MenuGroup, PageRequest, Redirect, Screen
from statesvc.addons.console.shipment_lines import town_of
from statesvc.addons.console.shipment_screens import LIST, path_of, unless
from statesvc.addons.console.shipment_summary import status_style
from statesvc.api.shipment_list_operations import ListParameters
from statesvc.http.inner_calls import Json
from statesvc.http.keys.key_store import Scope
from statesvc.http.paging import LIMIT_MAX
from statesvc.http.problem import Code, Problem
from statesvc.http.views import Column, Line, Table, draw
from statesvc.shipments.plain_names import spaced

_QUICK: Final[Sequence[tuple[str, Mapping[str, str]]]] = (
    ("All", {}),
    ("In trouble", {"in_trouble": "true"}),
    ("Silent 3 d+", {"stalled_for": "P3D"}),
    ("Contradicted", {"flag": "contradicted"}),
    ("Overdue", {"flag": "overdue"}),
    ("Out for delivery", {"status": "out_for_delivery"}),
    ("Delivered", {"status": "delivered"}),
)
_SILENCES: Final = (
    ("", "any time"),
    ("P1D", "a day"),
    ("P3D", "three days"),
    ("P7D", "a week"),
    ("P30D", "a month"),
)
_CHOSEN: Final = ("carrier_id", "status", "reason")


def _marks(shipment: Mapping[str, Any]) -> Markup:
    chips = [
        chip(spaced(flag), "bad" if flag == Flag.CONTRADICTED else "warn")
        for flag in shipment["flags"]
    ]
    status = chip(spaced(shipment["status"]), status_style(shipment["status"]))
    return Markup(" ").join([status, *chips, spaced(shipment["reason"] or "")])


_OPTIONAL: Final = {
    "order_id": Column("order_id", "Order"),
    "discriminator": Column("discriminator", "Which of them"),
}
_LISTED: Final = (
    Column("tracking_number", "Number", link=lambda row: row["path"]),
    Column(_marks, "Status"),
    Column("carrier_id", "Carrier"),
    Column(lambda row: town_of(row["last_location"]), "Last scan"),
    Column(lambda row: stated_short(row["last_event_at"]), "Carrier's time", wide=True),
    Column(lambda row: ago(row["recorded_at"]), "Known", wide=True),
)


async def show_list(visit: PageRequest) -> Mapping[str, Any] | Redirect:
    """Show the search results, or a page by the filters; a single result is shown at once."""
    wanted = {
        name: visit.query(name).strip()
        for name in ("carrier_id", "status", "reason", "flag", "in_trouble", "stalled_for")
    }
    sought = visit.query("q").strip()
    too_many = ""
    try:
        page = await _page(visit, wanted) if not sought else await _found(visit, sought)
    except Problem as problem:
        if problem.code is not Code.TOO_MANY:
            raise
        too_many, page = problem.detail, {"items": [], "next_cursor": None}
    if sought and len(page["items"]) == 1:
        return Redirect(path_of(page["items"][0]))
    items = page["items"]
    if too_many:
        said = Line(f"“{sought}”: {too_many}.", is_refusal=True)
    elif sought and not items:
        said = Line(
            f"Nothing is known of “{sought}”. Blanks, hyphens and capitals do not matter; a part of"
            " a number needs 4 characters.",
            is_refusal=True,
        )
    elif sought:
        said = Line(f"{len(items):,} shipments have this number, part of a number or reference.")
    elif page["next_cursor"] and not items:
        said = Line("No shipment on this page: the filter fits few; the next may have more.")
    else:
        said = Line("The newest change comes first." if items else "No shipment.")
    holds = [("Legal holds", "/console/legal-holds", False)] if visit.has(Scope.AUDIT) else []
    quick = [
        (name, f"{LIST}?{urlencode(chosen)}" if chosen else LIST, _is_chosen(wanted, chosen))
        for name, chosen in _QUICK
    ]
    rows = [{**one, "path": path_of(one, is_one_of_several=bool(sought))} for one in items]
    further = [
        column
        for name, column in _OPTIONAL.items()
        # a carrier's own mark tells parcels of one number apart, and says nothing elsewhere
        if (sought or name != "discriminator") and any(one[name] for one in items)
    ]
    return {
        "title": f"Shipments like “{sought}”" if sought else "Shipments",
        "sought": sought,
        "nav": tabs("Quick filters", [*quick, *holds]),
        "inputs": []
        if sought
        else [*filters_of(ListParameters, *_CHOSEN, values=wanted), *_kept(wanted)],
        "wanted": wanted,
        "blocks": [said, *draw(Table(*_LISTED, *further), {"items": rows})],
        "next_cursor": page["next_cursor"],
    }


def _kept(wanted: Mapping[str, str]) -> list[Input]:
    """Return the inputs that `filters_of` does not make: the silence; what quick filters chose."""
    silence = Input(
        name="stalled_for",
        label="Still under way, no news for",
        value=wanted["stalled_for"],
        options=_SILENCES,
    )
    quick = [
        Input(name=name, label=name, value=wanted[name], type="hidden")
        for name in ("flag", "in_trouble")
        if wanted[name]
    ]
    return [silence, *quick]


def _is_chosen(wanted: Mapping[str, str], chosen: Mapping[str, str]) -> bool:
    return {name: value for name, value in wanted.items() if value} == chosen


async def _page(visit: PageRequest, wanted: Mapping[str, str]) -> Json:
    given = {name: value for name, value in wanted.items() if value}
    return await visit.call_api(
        "GET /v1/shipments",
        **given,
        order="newest",
        details=True,
        cursor=visit.query("cursor") or None,
    )


async def _found(visit: PageRequest, sought: str) -> Json:
    """Find by number of any carrier, by a shipper's reference, by a part of the number; by id."""
    if not _is_uuid(sought):
        return await visit.call_api(
            "GET /v1/shipments", sought=sought, order="newest", details=True, limit=LIMIT_MAX
        )
    found = await unless(
        Code.NOT_FOUND, visit.call_api("GET /v1/shipments/{shipment_id}", shipment_id=sought)
    )
    return {"items": [] if found is None else [found], "next_cursor": None}


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def list_page() -> Screen:
    return Screen(
        path=LIST,
        title="Shipments",
        scope=Scope.READ,
        show=show_list,
        menu="Shipments",
        group=MenuGroup.PARCELS,
        section=LIST,
    )
