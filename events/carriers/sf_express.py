"""SF Express: RoutePushService (XML, JSON or form field `content`) and answers of route queries.

A push holds up to ten routes of any number of waybills. A route's id is unique within its waybill
only. Times are those of China, wherever the parcel is. SF wraps an answer as JSON text inside JSON.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("sf_express_codes.csv")
# Codes that are meaningful only with their reason.
BY_REASON: Final = {
    ("33", "5"): kit.Meaning(kit.Kind.SCAN, kit.Status.CANCELLED),
    ("33", "501"): kit.Meaning(kit.Kind.SCAN, kit.Status.CANCELLED),
    ("8000", "2"): kit.Meaning(kit.Kind.SCAN, kit.Status.DESTROYED, kit.Reason.DESTROYED),
    ("8000", "6"): kit.Meaning(kit.Kind.SCAN, kit.Status.LOST, kit.Reason.LOST),
    ("99", "2"): kit.Meaning(kit.Kind.SCAN, kit.Status.RETURNING),
}


def _meaning(raw: kit.Raw) -> kit.Meaning:
    by_reason = BY_REASON.get((raw.code or "", raw.reason or ""))
    return by_reason or CODES.get((raw.code or "",), kit.UNMAPPED)


CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y-%m-%d[ %H:%M[:%S][%f]]", "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y/%-m/%-d %-H:%M[:%S]"
    ),
    default_zone="Asia/Shanghai",
)

_FIELD: Final = b"content"
_ROUTES: Final = "WaybillRoute"
_FIELDS: Final = ("id", "acceptTime", "acceptAddress", "opCode", "reasonCode", "remark")
_WRAPPERS: Final = ("apiResultData", "msgData", "Body", "body")
_WRAPPERS_MAX: Final = 8
_ERROR_FIELDS: Final = frozenset(
    {"apiErrorMsg", "apiResultCode", "errorCode", "errorMsg", "success"}
)


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    # a push is a form with one field, or the field's content by itself
    content = kit.form_fields(body).get(_FIELD, body)
    routes = (
        _from_xml(kit.read_xml(content))
        if kit.is_xml(content)
        else _from_json(kit.read_json(content), "", rejections)
    )
    for where, number, route in routes:
        yield from kit.readings_of((_scan(route, where, received_at),), number, rejections)


def _scan(route: kit.JsonObject, where: str, received_at: datetime) -> kit.Scan:
    where_at = kit.place(city=route.get("acceptAddress"))
    code = kit.text(route.get("opCode"))
    raw = kit.Raw(code=code, reason=kit.text(route.get("reasonCode")))
    return kit.Scan(
        where=where,
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(kit.text(route.get("acceptTime")), where_at, received_at=received_at),
        place=where_at,
        description=kit.text(route.get("remark")),
        native_id=kit.text(route.get("id")),
        native_id_per_number=True,
    )


def _from_xml(document: kit.Document) -> Iterator[tuple[str, str | None, kit.JsonObject]]:
    root = document.root
    if root.tag not in ("Request", "Response"):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "XML, but neither a request nor an answer of SF Express"
        )
    for index, push in enumerate(root.iterfind(f"Body/{_ROUTES}"), start=1):
        yield (
            f"{_ROUTES}[{index}]",
            kit.text(push.get("mailno")),
            {name: push.get(name) for name in _FIELDS},
        )
    for answer in root.iterfind("Body/RouteResponse"):
        for index, route in enumerate(answer.iterfind("Route"), start=1):
            fields = {
                "acceptTime": route.get("accept_time"),
                "acceptAddress": route.get("accept_address"),
                "opCode": route.get("opcode"),
                "remark": route.get("remark"),
            }
            yield f"RouteResponse/Route[{index}]", kit.text(answer.get("mailno")), fields


def _from_json(
    body: object, where: str, rejections: kit.Rejections
) -> Iterator[tuple[str, str | None, kit.JsonObject]]:
    if type(body) is not dict:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but neither a push nor an answer of SF Express"
        )
    # one that is empty must not hide another
    wrapper = next((name for name in _WRAPPERS if body.get(name)), None)
    if _ROUTES in body:
        for index, route in kit.objects_at(body, _ROUTES, where, rejections):
            yield (
                f"{where}/{_ROUTES}/{index}",
                kit.text(route.get("mailno")) or kit.text(route.get("mailNo")),
                route,
            )
    elif "routeResps" in body:
        for index, answer in kit.objects_at(body, "routeResps", where, rejections):
            pointer = f"{where}/routeResps/{index}/routes"
            for at, route in kit.objects_at(
                answer, "routes", f"{where}/routeResps/{index}", rejections
            ):
                yield f"{pointer}/{at}", kit.text(answer.get("mailNo")), route
    elif wrapper is not None:
        yield from _from_json(_unwrapped(body, wrapper, where), f"{where}/{wrapper}", rejections)
    elif not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but neither a push nor an answer of SF Express"
        )


def _unwrapped(body: kit.JsonObject, wrapper: str, where: str) -> object:
    # each wrapper is parsed again, so nesting would cost a sender nothing and us a lot
    if where.count("/") >= _WRAPPERS_MAX:
        raise kit.UnreadableMessageError(
            kit.Cause.TOO_COMPLEX, f"more than {_WRAPPERS_MAX} wrappers around the routes"
        )
    inner = body[wrapper]
    return kit.read_json(inner.encode()) if type(inner) is str else kit.child(body, wrapper)


CARRIER: Final = kit.Carrier(
    carrier_id="sf_express",
    name="SF Express",
    number_fields=("mailno|mailNo", "WaybillRoute.@mailno", "RouteResponse.@mailno"),
    normalizers={"1": normalize},
    formats=("RoutePushService XML", "RoutePushService JSON", "Route query JSON"),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
    ack=kit.Ack(
        content_type="text/xml",
        body=b'<Response service="RoutePushService"><Head>OK</Head></Response>',
    ),
)
