"""Tables shared by the readers of DHL's own tracking of Germany, its Blue Dart and Unified
Tracking.
"""

from functools import lru_cache
from typing import Final

from events.event import Raw
from events.parsing.meanings import UNMAPPED, Meaning, finest, meanings
from events.parsing.sentences import by_sentence

PARCEL_DE: Final = "parcel-de"
# (ICE, RIC, standard event code), each blank where it makes no difference.
PARCEL_DE_CODES: Final = meanings("dhl_parcel_de_codes.csv")
# Texts in lower case; a `*` matches anything.
BLUEDART_TEXTS: Final = meanings("bluedart_texts.csv")
_DETAIL_PARTS: Final = 3

parcel_de_text = by_sentence(
    {
        words: meaning
        for (service, words), meaning in meanings("dhl_unified_texts.csv").items()
        if service == PARCEL_DE
    }
)
bluedart_text = by_sentence({words: meaning for (words,), meaning in BLUEDART_TEXTS.items()})


def parcel_de_codes(raw: Raw) -> Meaning:
    """Read ICE, RIC and standard event code as on the way to the consignee."""
    ice, ric, code = raw.type or "", raw.code or "", raw.reason or ""
    keys = ((ice, ric, code), (ice, ric, ""), (ice, "", code), (ice, "", "")) if ice else ()
    known = next((meaning for key in keys if (meaning := PARCEL_DE_CODES.get(key))), None)
    return finest((ice, known), (code, PARCEL_DE_CODES.get(("", "", code))))


@lru_cache(maxsize=1024)
def parcel_de_detail(printed: str) -> Meaning | None:
    """Read the three codes that Unified Tracking joins, `SRTED_NRQRD_PO`.

    None where the table knows none of them.
    """
    codes = printed.split("_")
    if len(codes) != _DETAIL_PARTS:
        return None
    found = parcel_de_codes(Raw(type=codes[0], code=codes[1], reason=codes[2]))
    return None if found is UNMAPPED else found
