"""The report of promises: on-time deliveries by carrier, service and month; late parcels; files."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web
from markupsafe import Markup

from statesvc.addons.console.charts import Bar, bars, meter
from statesvc.addons.console.formats import link, percent
from statesvc.addons.console.operation_forms import filters_of
from statesvc.addons.console.pages import attachment
from statesvc.addons.console.screen import MenuGroup, PageBlock, PageRequest, Picture, Screen
from statesvc.addons.console.shipment_screens import path_of
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.http.views import Column, Line, Table, draw
from statesvc.shipments.plain_names import spaced

PATH: Final = "/console/promises"
_CALL: Final = "/v1/reports/promises"
_CSV: Final = "text/csv"
_FILTERS: Final = ("since", "until", "carrier_id", "service", "lane")
_LATE: Final = 50
_GROUPS: Final = 40
_TABLES: Final = {"groups": "Counts by carrier, service, lane and month", "late": "Late parcels"}
_ABOUT: Final = (
    "The promise is the first estimate that the carrier gave; a parcel is on time if it was"
    " delivered before the midnight that ends its day. The share is of all that were due: on time,"
    " late or overdue. Sent back, lost or destroyed counts apart, as not delivered."
)
_BY_SERVICE: Final = Table(
    Column("carrier_id", "Carrier"),
    "service",
    Column(lambda group: _met(group["on_time_share"]), "On time, of those due"),
    "promised",
    "on_time",
    "late",
    "overdue",
    Column("not_delivered", wide=True),
    "open",
    Column("delay_days_p50", "Days after, median", wide=True),
    Column("delay_days_p90", "90 %", wide=True),
    of="groups",
    title="On time, by carrier and service",
    empty="Nothing was promised for these days.",
)
_LATE_PARCELS: Final = Table(
    Column("carrier_id", "Carrier", wide=True),
    Column("tracking_number", "Number", link=path_of),
    "service",
    Column("lane", wide=True),
    "promised_for",
    Column("delivered_at", "Delivered"),
    "days_late",
    Column(lambda parcel: spaced(parcel["status"]), "Status"),
    title="Late parcels",
    empty="None is late.",
)
_LEGEND: Final = (
    ("first", "on time"),
    ("second", "open, not delivered, or without a time"),
    ("third", "late or overdue"),
)


async def show_report(visit: PageRequest) -> Mapping[str, Any]:
    """Show counts and a page of late parcels."""
    wanted = _wanted(visit)
    groups = (await visit.call_api(f"GET {_CALL}", **wanted, by="carrier,service"))["groups"]
    by_month = (await visit.call_api(f"GET {_CALL}", **wanted, by="month"))["groups"]
    late = await visit.call_api(
        f"GET {_CALL}/late", **wanted, limit=_LATE, cursor=visit.query("cursor") or None
    )
    most = sorted(groups, key=lambda group: -group["promised"])[:_GROUPS]
    more = len(groups) - len(most)
    blocks: list[PageBlock] = [*draw(_BY_SERVICE, {"groups": most})]
    if more:
        said = "Those with most promises; {:,} more are in the file, or choose a carrier."
        blocks.append(Line(said.format(more)))
    if groups:
        chart = month_chart(by_month)
        blocks.append(Picture("By month of the promised day", chart, _LEGEND))
        blocks += [*draw(_LATE_PARCELS, late), *_files(wanted)]
    model = visit.calls.operation(f"GET {_CALL}").parameters
    span = "" if "since" in wanted else " Shown: the last 90 days, and those to come."
    return {
        "inputs": [] if model is None else filters_of(model, *_FILTERS, values=wanted),
        "wanted": wanted,
        "blocks": [Line(_ABOUT + span), *blocks],
        "next_cursor": late["next_cursor"],
    }


def _met(share: float | None) -> Markup | str:
    if share is None:
        return ""
    words = percent(share)
    picture = meter(share, 1, title=f"{words} on time")
    return Markup('<span class="nowrap">{} {}</span>').format(picture, words)


def _files(wanted: Mapping[str, str]) -> list[Line]:
    """Return the links to the files."""
    return [
        Line(
            Markup("{} as a file: {}").format(
                words, link(f"{PATH}/export?{urlencode({**wanted, 'table': table})}", "csv")
            )
        )
        for table, words in _TABLES.items()
    ]


def month_chart(groups: Sequence[Mapping[str, Any]]) -> Markup:
    """Draw promises by month: on time; not due, or not delivered at all; late or overdue."""
    columns = []
    for group in groups:
        missed = group["late"] + group["overdue"]
        month = group["month"][:7]
        kept = f"{group['on_time']:,} on time, {missed:,} late or overdue"
        label = f"{month}: {kept}, of {group['promised']:,}"
        columns.append(
            Bar(
                label,
                (group["on_time"], group["promised"] - group["on_time"] - missed, missed),
                tick=month,
            )
        )
    return bars(
        columns,
        title="Promises by month: " + "; ".join(column.label for column in columns),
        label_every=1,
        unit=" parcels",
    )


async def export(visit: PageRequest) -> web.StreamResponse:
    """Export a table as a file."""
    table = visit.query("table") or "groups"
    if table not in _TABLES:
        raise Problem(Code.INVALID_REQUEST, f"`table` is one of {', '.join(_TABLES)}")
    content = await visit.fetch(f"GET {_CALL}/export", **_wanted(visit), table=table, accept=_CSV)
    return attachment(content, _CSV, f"promises-{table}.csv")


def _wanted(visit: PageRequest) -> dict[str, str]:
    return {name: given for name in _FILTERS if (given := visit.query(name).strip())}


def promise_pages() -> list[Screen]:
    about: dict[str, Any] = {
        "title": "Delivery promises",
        "scope": Scope.READ,
        "section": PATH,
        "is_computed": True,
    }
    menu: dict[str, Any] = {"menu": "Delivery promises", "group": MenuGroup.PARCELS}
    return [
        Screen(path=PATH, show=show_report, **menu, **about),
        Screen(path=PATH + "/export", show=export, **about),
    ]
