"""Geodis: the shipment with its history (`listSuivis`). A code is situation and justification (`AAR/CFM`); `timeline` is a rollup.

Only justification CFM (conform) says that a situation went as it should; other pairs are known one by one: the codes are those of the
French standard INOVERT, whose texts La Poste publishes for Colissimo.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, objects_at
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("geodis_codes.csv")
_meaning: Final = by_code(CODES)
CLOCK: Final = Clock(
    formats=TimeFormats("%Y-%m-%d[ %H:%M[:%S]]", "%d/%m/%Y[ %H:%M[:%S]]"),
    default_zone="Europe/Paris",
    country="FR",
)


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one or several shipments."""
    for where, shipment in _shipments(read_json(body), rejections):
        pointer = f"{where}/listSuivis"
        found: list[Reading] = []
        for index, event in objects_at(shipment, "listSuivis", where, rejections):
            code, date, time = (
                text(event.get(name))
                for name in ("codeSituationJustification", "dateSuivi", "heureSuivi")
            )
            raw = Raw(code=code)
            found += reading_of(
                Scan(
                    where=f"{pointer}/{index}",
                    raw=raw,
                    meaning=_meaning(raw),
                    time=CLOCK.read(
                        f"{date} {time}" if date and time else date, received_at=received_at
                    ),
                    place=place(city=event.get("libelleCentre"), facility=event.get("codeSa")),
                    description=text(event.get("libelleSuivi"))
                    or text(event.get("libelleCourtSuivi")),
                ),
                text(shipment.get("noSuivi")),
                rejections,
            )
        yield from with_estimate(
            found, estimate(text(shipment.get("dateLivraisonPrevue")), CLOCK.formats)
        )


def _shipments(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is not dict or not {"contenu", "listSuivis", "ok", "codeErreur"} & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no tracking of Geodis")
    if "listSuivis" in body:
        yield "", body
        return
    is_list = type(body.get("contenu")) is list
    for index, shipment in objects_at(body, "contenu", "", rejections):
        yield f"/contenu/{index}" if is_list else "/contenu", shipment


CARRIER: Final = Carrier(
    carrier_id="geodis",
    name="Geodis",
    number_fields=("noSuivi",),
    normalizers={"1": normalize},
    formats=("Recherche d'envoi JSON",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
