"""All that a carrier is written with, ours or that of another package (docs/carrier-package.md), behind one import."""

from events.carriers.carrier import (
    MIB,
    Ack,
    Basic,
    Carrier,
    FormFieldMd5,
    Hmac,
    OAuthToken,
    RsaSha256,
    Sha256Concat,
    Sha256InBody,
    SharedHeader,
    ShipperChoice,
    SignedWebToken,
    TimestampedHmac,
    UrlToken,
)
from events.carriers.installed import InstalledCarrier, InstalledVersion
from events.carriers.normalizer import normalizer
from events.clear_part import is_stand_in, looks_like_code
from events.errors import Cause, UnreadableMessageError
from events.event import (
    NOWHERE,
    EventPlace,
    Normalized,
    PrintedTime,
    Raw,
    Reading,
    Rejection,
    value,
)
from events.identity.recipe import Recipe
from events.parsing.enrichment import estimate, with_estimate, with_signer
from events.parsing.flat_events import flat_events, read_value
from events.parsing.formats import ISO, TimeFormats, read_offset
from events.parsing.forms import form_fields
from events.parsing.json import read_json, read_object
from events.parsing.lines import position_in_line, reported_place
from events.parsing.lists import (
    JsonObject,
    as_list,
    child,
    elements_at,
    members,
    object_at,
    objects,
    objects_at,
    recognised,
)
from events.parsing.meanings import (
    UNMAPPED,
    Meaning,
    by_code,
    codes_without_text,
    finest,
    meanings,
    on_the_way_back,
    texts_of,
)
from events.parsing.places import country_code, known_countries, place
from events.parsing.rejections import Rejections
from events.parsing.scan import Scan, carried_by, reading_of, readings_of
from events.parsing.sentences import as_compared, by_sentence
from events.parsing.silence import NO_CONTAINER, holds_dated, says_nothing
from events.parsing.text import REPLACEMENT, collapse, signer, text, text_unless, without_markup
from events.parsing.times import EPOCH, MIDNIGHT, Clock, read_epoch
from events.parsing.whereabouts import NO_JOURNEY, Journey, home_of, origin_of_item
from events.parsing.xml import (
    Document,
    answers,
    body_of,
    elements,
    is_xml,
    read_xml,
    text_at,
    texts,
)
from events.parsing.zones import is_region
from events.spelling import normalize_number, spelled
from events.vocabulary import Kind, Reason, Status, TimePrecision, TzSource

__all__ = (
    "EPOCH",
    "ISO",
    "MIB",
    "MIDNIGHT",
    "NOWHERE",
    "NO_CONTAINER",
    "NO_JOURNEY",
    "REPLACEMENT",
    "UNMAPPED",
    "Ack",
    "Basic",
    "Carrier",
    "Cause",
    "Clock",
    "Document",
    "EventPlace",
    "FormFieldMd5",
    "Hmac",
    "InstalledCarrier",
    "InstalledVersion",
    "Journey",
    "JsonObject",
    "Kind",
    "Meaning",
    "Normalized",
    "OAuthToken",
    "PrintedTime",
    "Raw",
    "Reading",
    "Reason",
    "Recipe",
    "Rejection",
    "Rejections",
    "RsaSha256",
    "Scan",
    "Sha256Concat",
    "Sha256InBody",
    "SharedHeader",
    "ShipperChoice",
    "SignedWebToken",
    "Status",
    "TimeFormats",
    "TimePrecision",
    "TimestampedHmac",
    "TzSource",
    "UnreadableMessageError",
    "UrlToken",
    "answers",
    "as_compared",
    "as_list",
    "body_of",
    "by_code",
    "by_sentence",
    "carried_by",
    "child",
    "codes_without_text",
    "collapse",
    "country_code",
    "elements",
    "elements_at",
    "estimate",
    "finest",
    "flat_events",
    "form_fields",
    "holds_dated",
    "home_of",
    "is_region",
    "is_stand_in",
    "is_xml",
    "known_countries",
    "looks_like_code",
    "meanings",
    "members",
    "normalize_number",
    "normalizer",
    "object_at",
    "objects",
    "objects_at",
    "on_the_way_back",
    "origin_of_item",
    "place",
    "position_in_line",
    "read_epoch",
    "read_json",
    "read_object",
    "read_offset",
    "read_value",
    "read_xml",
    "reading_of",
    "readings_of",
    "recognised",
    "reported_place",
    "says_nothing",
    "signer",
    "spelled",
    "text",
    "text_at",
    "text_unless",
    "texts",
    "texts_of",
    "value",
    "with_estimate",
    "with_signer",
    "without_markup",
)
