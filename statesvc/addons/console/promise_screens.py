"""The report of promises: on-time deliveries by carrier, service and month; late parcels; files."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aiohttp import hdrs, web

from events.carriers import CARRIERS
from statesvc.addons.console.charts import Bar, bars
from statesvc.addons.console.screen import MenuGroup, PageRequest, Screen
from statesvc.addons.console.shipment_screens import path_of
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem

PATH: Final = "/console/promises"
_CALL: Final = "/v1/reports/promises"
_MEDIA_TYPES: Final = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
_FILTERS: Final = ("since", "until", "carrier_id", "service", "lane")
_LATE: Final = 50
_GROUPS: Final = 40
_TABLES: Final = ("groups", "late")


async def show_report(visit: PageRequest) -> Mapping[str, Any]:
    """Show counts and a page of late parcels."""
    wanted = _wanted(visit)
    groups = (await visit.call_api(f"GET {_CALL}", **wanted, by="carrier,service"))["groups"]
    by_month = (await visit.call_api(f"GET {_CALL}", **wanted, by="month"))["groups"]
    late = await visit.call_api(
        f"GET {_CALL}/late", **wanted, limit=_LATE, cursor=visit.query("cursor") or None
    )
    return {
        "wanted": {name: wanted.get(name) or "" for name in _FILTERS},
        "carriers": sorted(CARRIERS),
        "groups": sorted(groups, key=lambda group: -group["promised"])[:_GROUPS],
        "more": max(0, len(groups) - _GROUPS),
        "months": month_chart(by_month),
        "late": [(parcel, path_of(parcel)) for parcel in late["items"]],
        "next_cursor": late["next_cursor"],
        "formats": list(_MEDIA_TYPES),
    }


def month_chart(groups: Sequence[Mapping[str, Any]]) -> Any:  # noqa: ANN401 - markup
    """Draw promises by month: on time; not due, or not delivered at all; late or overdue.

    The share on time is shown for the first and the last month.
    """
    columns = []
    for group in groups:
        missed = group["late"] + group["overdue"]
        month = group["month"][:7]
        label = f"{month}: {group['on_time']:,} on time, {missed:,} late or overdue, of {group['promised']:,}"
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
        width=min(80 * len(columns), 720),
        label_every=1,
    )


async def export(visit: PageRequest) -> web.StreamResponse:
    """Export a table as a file."""
    table, form = visit.query("table") or "groups", visit.query("format") or "csv"
    if table not in _TABLES or form not in _MEDIA_TYPES:
        raise Problem(
            Code.INVALID_REQUEST,
            f"`table` is one of {', '.join(_TABLES)}, `format` one of {', '.join(_MEDIA_TYPES)}",
        )
    content = await visit.fetch(
        f"GET {_CALL}/export", **_wanted(visit), table=table, format=form, accept=_MEDIA_TYPES[form]
    )
    headers = {
        hdrs.CONTENT_DISPOSITION: f'attachment; filename="promises-{table}.{form}"',
        hdrs.CACHE_CONTROL: "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return web.Response(body=content, content_type=_MEDIA_TYPES[form], headers=headers)


def _wanted(visit: PageRequest) -> dict[str, str]:
    return {name: given for name in _FILTERS if (given := visit.query(name).strip())}


def promise_pages() -> list[Screen]:
    about: dict[str, Any] = {
        "scope": Scope.READ,
        "template": "promises.html",
        "section": PATH,
        "is_computed": True,
    }
    return [
        Screen(
            path=PATH,
            title="Delivery promises",
            show=show_report,
            menu="Delivery promises",
            group=MenuGroup.PARCELS,
            **about,
        ),
        Screen(path=PATH + "/export", title="Delivery promises", show=export, **about),
    ]
