"""Thailand Post: webhooks and answers of its Track API.

Years are those of the Buddhist calendar: 2562 is 2019.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("thailand_post_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%d/%m/%Y %H:%M:%S[%z]"), default_zone="Asia/Bangkok", country="TH"
)

BUDDHIST_YEARS: Final = 543
_BUDDHIST: Final = re.compile(r"(?<=/)2[4-9]\d\d(?=\s)")

_ITEMS: Final = "items"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, item in _items(kit.read_json(body), rejections):
        raw = kit.Raw(code=kit.text(item.get("status")))
        scan = kit.Scan(
            where=where,
            raw=raw,
            meaning=_meaning(raw),
            time=_time(kit.text(item.get("status_date")), received_at),
            place=kit.place(
                postal_code=item.get("postcode"), country="TH", facility=item.get("location")
            ),
            description=kit.text(item.get("status_description")),
            signed_by=item.get("receiver_name"),
        )
        yield from kit.reading_of(scan, kit.text(item.get("barcode")), rejections)


def _items(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is not dict or not {"response", _ITEMS} & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but neither a webhook nor an answer of Thailand Post"
        )
    where = ""
    if _ITEMS not in body:
        where, body = "/response", kit.object_at(body, "response", "", rejections)
    if _ITEMS not in body:
        rejections.add(f"{where}/{_ITEMS}", kit.NO_CONTAINER)
        return
    found = body[_ITEMS]
    lists = (
        {f"{where}/{_ITEMS}/{number}": items for number, items in found.items()}
        if type(found) is dict
        else {f"{where}/{_ITEMS}": found}
    )
    if not any(map(kit.as_list, lists.values())):
        rejections.note_nothing()
    for pointer, items in lists.items():
        members = kit.objects(items, pointer, rejections)
        yield from kit.recognised(
            ((f"{pointer}/{index}", item) for index, item in members), {"status"}, rejections
        )


def _time(printed: str | None, received_at: datetime) -> kit.PrintedTime | None:
    if printed is None:
        return CLOCK.read(None, received_at=received_at)
    ours = _BUDDHIST.sub(lambda year: str(int(year[0]) - BUDDHIST_YEARS), printed)
    time = CLOCK.read(ours, received_at=received_at)
    return None if time is None else replace(time, printed=printed)


CARRIER: Final = kit.Carrier(
    carrier_id="thailand_post",
    name="Thailand Post",
    number_fields=("barcode",),
    normalizers={"1": normalize},
    formats=("Track API JSON", "Webhook JSON"),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
