"""SF Express: RoutePushService (XML or JSON, by itself or in the form field `content`) and the answers of its route queries.

One push holds up to ten routes of any number of waybills. A route's id is unique within its waybill only. Times are those of China,
wherever the parcel is. JSON inside JSON as text is SF's way to wrap an answer.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Ack, Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.formats import TimeFormats
from events.parsing.forms import form_fields
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, objects_at
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock
from events.parsing.xml import Document, is_xml, read_xml

CODES: Final = meanings("sf_express_codes.csv")
_meaning: Final = by_code(CODES)

CLOCK: Final = Clock(
    formats=TimeFormats(
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


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    content = form_fields(body).get(_FIELD, body)
    routes = (
        _from_xml(read_xml(content))
        if is_xml(content)
        else _from_json(read_json(content), "", rejections)
    )
    for where, number, route in routes:
        yield from readings_of((_scan(route, where, received_at),), number, rejections)


def _scan(route: JsonObject, where: str, received_at: datetime) -> Scan:
    where_at = place(city=route.get("acceptAddress"))
    code = text(route.get("opCode"))
    raw = Raw(code=code, reason=text(route.get("reasonCode")))
    return Scan(
        where=where,
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(text(route.get("acceptTime")), where_at, received_at=received_at),
        place=where_at,
        description=text(route.get("remark")),
        native_id=text(route.get("id")),
        native_id_per_number=True,
    )


def _from_xml(document: Document) -> Iterator[tuple[str, str | None, JsonObject]]:
    root = document.root
    if root.tag not in ("Request", "Response"):
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "XML, but neither a request nor an answer of SF Express"
        )
    for index, push in enumerate(root.iterfind(f"Body/{_ROUTES}"), start=1):
        yield (
            f"{_ROUTES}[{index}]",
            text(push.get("mailno")),
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
            yield f"RouteResponse/Route[{index}]", text(answer.get("mailno")), fields


def _from_json(
    body: object, where: str, rejections: Rejections
) -> Iterator[tuple[str, str | None, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is not dict:
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "JSON, but neither a push nor an answer of SF Express"
        )
    wrapper = next((name for name in _WRAPPERS if body.get(name)), None)
    if _ROUTES in body:
        for index, route in objects_at(body, _ROUTES, where, rejections):
            yield (
                f"{where}/{_ROUTES}/{index}",
                text(route.get("mailno")) or text(route.get("mailNo")),
                route,
            )
    elif "routeResps" in body:
        for index, answer in objects_at(body, "routeResps", where, rejections):
            pointer = f"{where}/routeResps/{index}/routes"
            for at, route in objects_at(
                answer, "routes", f"{where}/routeResps/{index}", rejections
            ):
                yield f"{pointer}/{at}", text(answer.get("mailNo")), route
    elif wrapper is not None:
        yield from _from_json(_unwrapped(body, wrapper, where), f"{where}/{wrapper}", rejections)
    elif not _ERROR_FIELDS & body.keys():
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "JSON, but neither a push nor an answer of SF Express"
        )


def _unwrapped(body: JsonObject, wrapper: str, where: str) -> object:
    """Return what is in a wrapper, as an object or as the text of one."""
    if where.count("/") >= _WRAPPERS_MAX:
        raise UnreadableMessageError(
            Cause.TOO_COMPLEX, f"more than {_WRAPPERS_MAX} wrappers around the routes"
        )
    inner = body[wrapper]
    return read_json(inner.encode()) if type(inner) is str else child(body, wrapper)


CARRIER: Final = Carrier(
    carrier_id="sf_express",
    name="SF Express",
    number_fields=("mailno|mailNo", "WaybillRoute.@mailno", "RouteResponse.@mailno"),
    normalizers={"1": normalize},
    formats=("RoutePushService XML", "RoutePushService JSON", "Route query JSON"),
    reread=_meaning,
    authentication=(ShipperChoice(),),
    ack=Ack(
        content_type="text/xml",
        body=b'<Response service="RoutePushService"><Head>OK</Head></Response>',
    ),
)
