"""GHTK (Giao Hang Tiet Kiem): its webhook of a status, a form or JSON.

Its own sample prints `+07:00` in the form without escaping the plus, which a form has for a blank.
A reason refines a status where the parcel was not delivered.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (status_id, reason_code): the reason is empty where none, or any, is printed.
CODES: Final = kit.meanings("ghtk_codes.csv")

CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="Asia/Ho_Chi_Minh", country="VN")

_NUMBER: Final = "label_id"
_STATUS: Final = "status_id"
_PLUS: Final = re.compile(r"(?<=\d) (?=\d\d:?\d\d\Z)")
_WITHOUT_CODE: Final = frozenset({"", "0"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    push = _push(body)
    raw = kit.Raw(
        code=kit.text(push.get(_STATUS)),
        reason=kit.text_unless(push.get("reason_code"), _WITHOUT_CODE),
    )
    at = kit.text(push.get("action_time"))
    scan = kit.Scan(
        where="",
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(at and _offset_restored(at), received_at=received_at),
        description=kit.text(push.get("reason")),
    )
    yield from kit.reading_of(scan, kit.text(push.get(_NUMBER)), rejections)


def _push(body: bytes) -> kit.JsonObject:
    form = kit.form_fields(body)
    push = (
        {kit.decoded(name): kit.decoded(value) for name, value in form.items()}
        if form
        else kit.read_json(body)
    )
    if type(push) is not dict or not push.keys() >= {_NUMBER, _STATUS}:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "a form or JSON, but no webhook of GHTK"
        )
    return push


def _offset_restored(at: str) -> str:
    return _PLUS.sub("+", at) if "T" in at else at


def _meaning(raw: kit.Raw) -> kit.Meaning:
    code = raw.code or ""
    return CODES.get((code, raw.reason or "")) or CODES.get((code, ""), kit.UNMAPPED)


CARRIER: Final = kit.Carrier(
    carrier_id="ghtk",
    name="GHTK",
    number_fields=(_NUMBER,),
    normalizers={"1": normalize},
    formats=("Webhook form", "Webhook JSON"),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
