"""Geodis: the shipment with its history (`listSuivis`).

A code is situation and justification (`AAR/CFM`); `timeline` is a rollup. Only justification CFM
(conform) confirms a situation; other pairs are known individually: the codes are those of the
French standard INOVERT, in the texts that La Poste publishes for Colissimo.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("geodis_codes.csv")
_meaning: Final = kit.by_code(CODES)
CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%Y-%m-%d[ %H:%M[:%S]]", "%d/%m/%Y[ %H:%M[:%S]]"),
    default_zone="Europe/Paris",
    country="FR",
)


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, shipment in _shipments(kit.read_json(body), rejections):
        pointer = f"{where}/listSuivis"
        found: list[kit.Reading] = []
        for index, event in kit.objects_at(shipment, "listSuivis", where, rejections):
            code, date, time = (
                kit.text(event.get(name))
                for name in ("codeSituationJustification", "dateSuivi", "heureSuivi")
            )
            raw = kit.Raw(code=code)
            found += kit.reading_of(
                kit.Scan(
                    where=f"{pointer}/{index}",
                    raw=raw,
                    meaning=_meaning(raw),
                    time=CLOCK.read(
                        f"{date} {time}" if date and time else date, received_at=received_at
                    ),
                    place=kit.place(city=event.get("libelleCentre"), facility=event.get("codeSa")),
                    description=kit.text(event.get("libelleSuivi"))
                    or kit.text(event.get("libelleCourtSuivi")),
                ),
                kit.text(shipment.get("noSuivi")),
                rejections,
            )
        yield from kit.with_estimate(
            found, kit.estimate(kit.text(shipment.get("dateLivraisonPrevue")), CLOCK.formats)
        )


def _shipments(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is not dict or not {"contenu", "listSuivis", "ok", "codeErreur"} & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of Geodis"
        )
    if "listSuivis" in body:
        yield "", body
        return
    is_list = type(body.get("contenu")) is list
    for index, shipment in kit.objects_at(body, "contenu", "", rejections):
        yield f"/contenu/{index}" if is_list else "/contenu", shipment


CARRIER: Final = kit.Carrier(
    carrier_id="geodis",
    name="Geodis",
    number_fields=("noSuivi",),
    normalizers={"1": normalize},
    formats=("Recherche d'envoi JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
