"""The recipe of each carrier: when two of its statements are the same scan. Final.

A changed recipe would append every shipment's history again, so the old recipe then stays as `also`
of the new one. Each choice was made by comparing all envelopes of the carrier;
`tests/events/carriers/envelope_pairs.py` holds the same scan in two of them.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, overload

from events.identity.recipe import (
    PLACE_PARTS,
    PlacePart,
    Recipe,
    canonical_discriminator,
    canonical_number,
    rederived_id,
)
from events.vocabulary import TimePrecision

_MINUTE: Final = TimePrecision.MINUTE
_CITY: Final[tuple[PlacePart, ...]] = ("city",)
_ADDRESS: Final[tuple[PlacePart, ...]] = ("city", "region", "country")
_FACILITY: Final[tuple[PlacePart, ...]] = ("facility",)

_LOCAL: Final = Recipe(time="local", codes=("code",), place=_CITY)
_INSTANT: Final = Recipe(time="instant", codes=("code",), place=_CITY)

_USPS: Final = Recipe(
    time="local",
    precision=_MINUTE,
    codes=("code",),
    place=_CITY,
    # a barcode prints 420 and the consignee's postcode in front of the number
    ignored_in_number=re.compile(
        r"\A420(?:\d{9}(?=9[1-5]\d{20}\Z)|\d{5}(?=9[1-5]\d{20}\Z)|\d{5}(?=9[1-5]\d{24}\Z))"
    ),
)
_EPCIS: Final = Recipe(
    time="instant",
    codes=("code", "reason"),
    # places and readers are printed as URNs or as web URIs; EPCIS prints no country,
    # so no place ever differs
    place=("country",),
    ignored_in_code=re.compile(
        r"\A(?:urn:epcglobal:cbv:(?:bizstep|disp):|(?:https?://\S*/)?(?:BizStep|Disp)-|"
        r"cbv:(?:BizStep|Disp)-)"
    ),
)

RECIPES: Final[dict[str, Recipe]] = {
    # its 2024 API prints UTC, the ones before it the offset of the place, the oldest none
    "aftership": replace(_INSTANT, also=(_LOCAL,)),
    "amazon": _INSTANT,
    # the JSON twin prints an epoch with the offset of the place
    "aramex": replace(_LOCAL, codes=("code", "reason")),
    "asendia": _LOCAL,
    "australiapost": replace(_INSTANT, place=_ADDRESS),
    "austrianpost": replace(_INSTANT, codes=("type", "code", "reason"), place=(), translates=True),
    # a push prints the city of a scan, an answer only the place, and at times a code as a number
    "bluedart": replace(
        _LOCAL,
        precision=_MINUTE,
        codes=("type", "code"),
        place=(),
        ignored_in_code=re.compile(r"\A0{1,2}(?=\d)"),
    ),
    "bpost": replace(_INSTANT, place=(), translates=True),
    "bring": replace(_INSTANT, place=(), translates=True),
    "cainiao": replace(_LOCAL, place=(), translates=True),
    # a summary has another code for the same event, but its text
    "canadapost": replace(_LOCAL, translates=True, also=(Recipe(time="local", codes=()),)),
    # every part is the sender's own statement
    "canonical": Recipe(
        time="instant", codes=("type", "code", "reason", "further"), place=PLACE_PARTS, piece=True
    ),
    "canpar": _LOCAL,
    # a status and a problem may have the same number
    "cdek": replace(_INSTANT, codes=("type", "code"), place=()),
    "chronopost": replace(_INSTANT, translates=True),
    "clickpost": _LOCAL,
    # older answers print the minute, and a status of one digit
    "correios": replace(
        _LOCAL,
        precision=_MINUTE,
        codes=("type", "code"),
        place=(),
        translates=True,
        ignored_in_code=re.compile(r"\A0(?=\d\Z)"),
    ),
    "correos": replace(_LOCAL, place=(), translates=True),
    "dcsa": Recipe(time="instant", place=("country", "facility")),
    # pending is one word for many codes
    "delhivery": replace(_LOCAL, codes=("type", "code", "further")),
    "dhl_ecommerce": replace(_LOCAL, place=(), ignored_in_number=_USPS.ignored_in_number),
    # an answer in XML prints no offset, the area is the place in all of them
    "dhl_express": replace(_LOCAL, place=_FACILITY, piece=True, translates=True),
    # places are printed in the language of the answer; a list of events prints the number without
    # the two zeros that mark it
    "dhl_parcel_de": Recipe(
        time="local",
        precision=_MINUTE,
        translates=True,
        ignored_in_number=re.compile(r"\A00(?=\d{18}\Z)"),
    ),
    "dhl_parcel_nl": replace(_INSTANT, place=()),
    "dhl_poland": _LOCAL,
    # the state of a shipment prints the local time of its scan as UTC
    "dhl_unified": replace(_LOCAL, codes=("type", "code"), piece=True, translates=True),
    "dicom": replace(_LOCAL, codes=("code", "reason"), place=_FACILITY, piece=True),
    "doordash": replace(_INSTANT, place=()),
    # countries number the same scan differently; two scans of one minute differ in their depot
    "dpd": replace(
        _LOCAL, precision=_MINUTE, ignored_in_code=re.compile(r"\ASC_\d+_"), translates=True
    ),
    "dtdc": replace(_LOCAL, precision=_MINUTE),
    "easypost": Recipe(time="instant", place=_CITY),
    "easyship": _INSTANT,
    "epcis": _EPCIS,
    "evri": replace(_INSTANT, codes=("type", "code"), place=()),
    # a facility stands in some envelopes only, and which part of FedEx carries the parcel
    # makes no other shipment
    "fedex": Recipe(time="local", place=_CITY, ignored_in_discriminator=re.compile(r"~[A-Z]+\Z")),
    "fourpx": _LOCAL,
    "geodis": replace(_LOCAL, place=_FACILITY, translates=True),
    "ghn": replace(_INSTANT, place=()),
    "ghtk": replace(_INSTANT, codes=("code", "reason"), place=()),
    "gls": replace(_INSTANT, translates=True),
    "hermes": replace(_INSTANT, translates=True),
    "ics_courier": _LOCAL,
    # a webhook of ShipX prints the minute of its push, and a state by the name of the webhook
    "inpost": Recipe(
        time="instant",
        precision=_MINUTE,
        codes=("code",),
        ignored_in_code=re.compile(r"\Ashipment_(?=confirmed\Z)"),
    ),
    "jtexpress": replace(_LOCAL, place=(), translates=True),
    # a status is Karrio's own, and only the newest event has it in earlier versions
    "karrio": Recipe(time="local", precision=_MINUTE, codes=()),
    # the newest trace takes the state of the shipment, and loses it with the next one
    "kdniao": Recipe(time="local", codes=()),
    # the newest event takes the state of the shipment, and loses it with the next one
    "kuaidi100": Recipe(time="local", codes=()),
    "lalamove": replace(_INSTANT, place=()),
    "landmark": _LOCAL,
    "laposte": replace(_INSTANT, place=(), translates=True),
    "mercado_envios": replace(_INSTANT, codes=("type", "code"), place=()),
    "morneau": replace(_LOCAL, codes=("code", "reason"), translates=True),
    "nationex": replace(_LOCAL, translates=True),
    # the second version prints the particulars in a field of their own
    "ninjavan": replace(_INSTANT, codes=("type",), place=()),
    "novaposhta": replace(_LOCAL, place=()),
    "nzpost": replace(_LOCAL, place=()),
    "omniva": replace(_LOCAL, place=()),
    "ontrac": replace(_INSTANT, place=()),
    "packeta": replace(_LOCAL, place=_FACILITY),
    "parcelone": _LOCAL,
    # the newest state takes the status of the shipment, and loses it with the next one
    "parcelsapp": Recipe(time="instant", codes=()),
    "pitney_bowes": _LOCAL,
    "poste_italiane": replace(_LOCAL, place=(), translates=True),
    "posti": replace(_LOCAL, place=()),
    "postnl": replace(_LOCAL, place=(), translates=True),
    "postnord": replace(_LOCAL, place=(), translates=True),
    "purolator": replace(_LOCAL, translates=True),
    "roadie": replace(_INSTANT, place=()),
    "royalmail": _INSTANT,
    "seko": replace(_LOCAL, codes=("code", "reason"), place=("city", "country"), piece=True),
    "sendcloud": replace(_INSTANT, place=()),
    "sendle": _INSTANT,
    # in v1 only the newest event has a code, and loses it with the next one; an
    # address comes and goes too
    "17track": Recipe(time="local", precision=_MINUTE, codes=()),
    # an answer prints no ids
    "sf_express": replace(_LOCAL, also=(_LOCAL,)),
    "ship24": _LOCAL,
    "shipengine": _INSTANT,
    "shiplogic": replace(_INSTANT, place=(), also=(replace(_INSTANT, place=()),)),
    # the state of a shipment has no id, and nobody promises that those of the history stay
    "shippo": replace(
        _LOCAL, codes=("code", "reason"), also=(replace(_LOCAL, codes=("code", "reason")),)
    ),
    "shiprocket": _LOCAL,
    "smartkargo": replace(_LOCAL, place=_FACILITY, piece=True),
    "spring": _LOCAL,
    "teleship": _INSTANT,
    "thailand_post": replace(_LOCAL, place=(), translates=True),
    "tnt": replace(_LOCAL, precision=_MINUTE, place=_FACILITY),
    # a substatus is given by TrackingMore, and may be given again; the words and the
    # minute are of the carrier
    "trackingmore": Recipe(time="local", precision=_MINUTE, codes=()),
    "uber_direct": replace(_INSTANT, codes=("type", "code"), place=()),
    # only the city is printed by all; an answer adds the facility, others leave the state out
    "ups": Recipe(time="local", codes=("type", "code"), place=_CITY),
    # older answers print a text and no code
    "usps": replace(_USPS, also=(replace(_USPS, codes=()),)),
    "veho": _LOCAL,
    "viettelpost": replace(_LOCAL, codes=("code", "reason"), place=()),
    "x12_214": replace(_LOCAL, precision=_MINUTE, codes=("type", "code")),
    "yanwen": _INSTANT,
}

_PLAIN: Final = Recipe(time="local", place=_ADDRESS)


def derives(document: Mapping[str, Any]) -> bool:
    """Return whether the derived id of a canonical event follows a present or earlier recipe."""
    recipe, event_id = recipe_of(document["carrier_id"]), document["event_id"]
    return any(rederived_id(each, document) == event_id for each in (recipe, *recipe.also))


def recipe_of(carrier_id: str) -> Recipe:
    """Return the recipe of a carrier; a plain recipe for an unknown id, as in lookups."""
    return RECIPES.get(carrier_id, _PLAIN)


def number_of(carrier_id: str, printed: str) -> str:
    """Return a tracking number, in any spelling, as it is compared."""
    return canonical_number(recipe_of(carrier_id), printed)


@overload
def discriminator_of(carrier_id: str, printed: str) -> str: ...


@overload
def discriminator_of(carrier_id: str, printed: None) -> None: ...


def discriminator_of(carrier_id: str, printed: str | None) -> str | None:
    """Return a discriminator as it is compared; None where none was asked for."""
    return None if printed is None else canonical_discriminator(recipe_of(carrier_id), printed)
