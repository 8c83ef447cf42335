"""TNT: the ExpressConnect tracking answer, any number of consignments.

A number may mean several consignments, distinguished by the customer's reference (the
discriminator). Times are local to the depot, of which only code and name are known. A summary
request returns no scans; then the summary code decides.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers import kit

# (level, code): `status`, or the `summary` of a consignment.
CODES: Final = kit.meanings("tnt_codes.csv")

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%Y%m%d[ %H%M[%S]]", "%Y-%m-%d[ %H:%M[:%S]]"),
    default_zone="Europe/Amsterdam",
    airports=True,
)

_ROOT: Final = "TrackResponse"
_ERRORS: Final = frozenset({"Error", "Fault", "parse_error", "runtime_error"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    answer = kit.body_of(kit.read_xml(body))
    if answer is None or answer.tag in _ERRORS:
        return
    if answer.tag != _ROOT:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "XML, but no TrackResponse of TNT"
        )
    for index, consignment in enumerate(answer.iterfind("Consignment"), start=1):
        fields = kit.texts(consignment)
        scans = _scans(consignment, fields, f"Consignment[{index}]", received_at, rejections)
        found = kit.readings_of(scans, fields.get("ConsignmentNumber"), rejections)
        yield from kit.with_signer(found, kit.signer(fields.get("Signatory")))


def _scans(
    consignment: _Element,
    of_all: dict[str, str],
    where: str,
    received_at: datetime,
    rejections: kit.Rejections,
) -> Iterator[kit.Scan]:
    reference = of_all.get("CustomerReference", "")
    journey = _journey(consignment, of_all)
    statuses = kit.elements_at(consignment, "StatusData", where, rejections)
    for index, status in statuses:
        fields = kit.texts(status)
        raw = kit.Raw(code=fields.get("StatusCode"))
        where_at = kit.place(city=fields.get("DepotName"), facility=fields.get("Depot"))
        yield kit.Scan(
            where=f"{where}/StatusData[{index}]",
            raw=raw,
            meaning=(meant := _meaning(raw)),
            time=CLOCK.read(
                _joined(fields.get("LocalEventDate"), fields.get("LocalEventTime")),
                where_at,
                received_at=received_at,
                journey=journey.at(meant.status),
            ),
            place=where_at,
            description=fields.get("StatusDescription"),
            discriminator=reference,
        )
    summary = of_all.get("SummaryCode")
    meaning: kit.Meaning | None = CODES.get(("summary", summary or ""))
    if not statuses and meaning is not None:
        yield kit.Scan(
            where=f"{where}/SummaryCode",
            raw=kit.Raw(code=summary),
            meaning=meaning,
            time=CLOCK.read(
                _joined(of_all.get("DeliveryDate"), of_all.get("DeliveryTime")),
                received_at=received_at,
                journey=journey.at(meaning.status),
            ),
            discriminator=reference,
        )


def _journey(consignment: _Element, of_all: dict[str, str]) -> kit.Journey:
    """Return the countries that the consignment goes from and to; depots are
    printed without theirs.
    """
    return kit.Journey(
        origin=kit.place(
            city=of_all.get("OriginDepotName"),
            country=kit.text_at(consignment, "OriginCountry/CountryCode"),
        ),
        destination=kit.place(
            city=of_all.get("DeliveryTown"),
            country=kit.text_at(consignment, "DestinationCountry/CountryCode"),
        ),
    )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    return CODES.get(("status", raw.code or ""), kit.UNMAPPED)


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read a code, but not that of a summary, which may be that of a status too."""
    return None if ("summary", raw.code or "") in CODES else _meaning(raw)


def _joined(date: str | None, time: str | None) -> str | None:
    return f"{date} {time}" if date and time else date


CARRIER: Final = kit.Carrier(
    carrier_id="tnt",
    name="TNT",
    number_fields=("ConsignmentNumber",),
    normalizers={"1": normalize},
    formats=("ExpressConnect TrackResponse XML",),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
