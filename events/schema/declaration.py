"""The fields of a canonical event, as printed by the API and kept in the log.

The schema is generated from this table. A new word of the vocabulary, or a new field, is an
addition; a field never becomes required, because old entries without it stay in the log. The log
leaves out unknown fields; the API prints them as null.
"""

from collections.abc import Iterable, Mapping
from enum import Enum, StrEnum
from typing import Any, Final, NamedTuple

from events.entry.kinds import FORMAT
from events.vocabulary import Kind, Reason, Status, TimePrecision, TzSource

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

Schema = Mapping[str, Any]

TEXT: Final[Schema] = {"type": "string"}
FLAG: Final[Schema] = {"type": "boolean"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
TEXTS: Final[Schema] = {"type": "array", "items": TEXT}
TIME: Final[Schema] = {"type": "string", "format": "date-time"}
UUID: Final[Schema] = {"type": "string", "format": "uuid"}
HASH: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


class Presence(Enum):
    """Presence of a field: `ALWAYS` with a value, as `NULLABLE` always but null where not
    known, or only `AT_TIMES`.
    """

    ALWAYS = "always"
    NULLABLE = "nullable"
    AT_TIMES = "at times"
    NULLABLE_AT_TIMES = "nullable at times"
    NEVER = "never"


ALWAYS, NULLABLE, AT_TIMES, NULLABLE_AT_TIMES, NEVER = Presence


class Field(NamedTuple):
    """A field, `printed` by the API and `logged` by the log."""

    name: str
    value: Schema
    printed: Presence
    logged: Presence
    says: str


def _words(words: type[StrEnum]) -> Schema:
    return {"type": "string", "enum": [word.value for word in words]}


def _object(fields: Iterable[tuple[Field, Presence]]) -> dict[str, Any]:
    """Build the schema of an object; unknown fields are allowed everywhere, as the
    next version may add one.
    """
    members = [(field, presence) for field, presence in fields if presence is not NEVER]
    return {
        "type": "object",
        "properties": {field.name: _value(field, presence) for field, presence in members},
        "required": [field.name for field, presence in members if presence in (ALWAYS, NULLABLE)],
    }


def _value(field: Field, presence: Presence) -> dict[str, Any]:
    value = dict(field.value)
    if presence in (NULLABLE, NULLABLE_AT_TIMES):
        value["type"] = [value["type"], "null"]
        if "enum" in value:
            value["enum"] = [*value["enum"], None]
    return {**value, "description": field.says}


PLACE: Final = (
    Field("city", TEXT, NULLABLE, AT_TIMES, "As printed."),
    Field("region", TEXT, NULLABLE, AT_TIMES, "State or province, as printed."),
    Field(
        "postal_code",
        TEXT,
        NULLABLE,
        AT_TIMES,
        "Its beginning, where one is defined for the country; as printed with scope `pii`.",
    ),
    Field(
        "country",
        TEXT,
        NULLABLE,
        AT_TIMES,
        "ISO 3166-1 alpha-2 where the carrier allows to know it, else as printed.",
    ),
    Field("facility", TEXT, NULLABLE, AT_TIMES, "The carrier's own id of the facility."),
)

RAW: Final = (
    Field("type", TEXT, NEVER, AT_TIMES, "The carrier's type or group of the code."),
    Field("code", TEXT, NEVER, AT_TIMES, "The carrier's code."),
    Field("reason", TEXT, NEVER, AT_TIMES, "The carrier's code of a reason."),
    Field("further", TEXTS, NEVER, AT_TIMES, "Further codes."),
    Field("time", TEXT, NEVER, ALWAYS, "The time as printed; empty where none is."),
    Field("zone", TEXT, NEVER, AT_TIMES, "The zone or offset as printed."),
)

_PRINTED_PLACE: Final = _object((field, field.printed) for field in PLACE)
_LOGGED_PLACE: Final = _object((field, field.logged) for field in PLACE)
_LOGGED_RAW: Final = _object((field, field.logged) for field in RAW)

STATEMENT: Final = (
    Field("carrier_id", TEXT, ALWAYS, ALWAYS, "The carrier that said it."),
    Field(
        "event_id",
        TEXT,
        ALWAYS,
        ALWAYS,
        "Unique per carrier: its own id, or one derived from what the carrier stated.",
    ),
    Field("tracking_number", TEXT, ALWAYS, ALWAYS, "As printed, trimmed."),
    Field(
        "discriminator",
        TEXT,
        ALWAYS,
        ALWAYS,
        "Tells apart the shipments of a number that is used again; usually empty.",
    ),
    Field("kind", _words(Kind), ALWAYS, ALWAYS, "What the event does to its shipment."),
    Field("occurred_at", TIME, ALWAYS, ALWAYS, "With the offset that `tz_source` explains."),
    Field("occurred_at_raw", TEXT, ALWAYS, NEVER, "The time as the carrier printed it."),
    Field("tz_source", _words(TzSource), ALWAYS, ALWAYS, "Where the offset comes from."),
    Field(
        "time_precision", _words(TimePrecision), ALWAYS, ALWAYS, "How exactly the time was printed."
    ),
    Field("time_flag", TEXT, NEVER, AT_TIMES, "What is doubtful about the time."),
    Field(
        "status", _words(Status), NULLABLE, AT_TIMES, "Where the shipment is, as we read the code."
    ),
    Field("reason", _words(Reason), NULLABLE, AT_TIMES, "Why."),
    Field(
        "carrier_code", TEXT, NULLABLE, AT_TIMES, "Type, code and reason as printed, joined by `/`."
    ),
    Field(
        "by_category",
        FLAG,
        ALWAYS,
        ALWAYS,
        "The code is not known; the carrier's own category of it was read.",
    ),
    Field(
        "raw",
        _LOGGED_RAW,
        NEVER,
        ALWAYS,
        "The carrier's own words; a field that it did not print is absent.",
    ),
    Field("location", _PRINTED_PLACE, ALWAYS, NEVER, "Where it happened."),
    Field(
        "location",
        _LOGGED_PLACE,
        NEVER,
        ALWAYS,
        "Where it happened; a part that is not known is absent.",
    ),
    Field("piece", TEXT, NULLABLE, AT_TIMES, "One of several pieces under one number."),
    Field("estimated_delivery", TEXT, NULLABLE, AT_TIMES, "A date, or a time of RFC 3339."),
    Field(
        "service",
        TEXT,
        NULLABLE_AT_TIMES,
        AT_TIMES,
        "What the shipper bought, as the carrier names it.",
    ),
    Field(
        "parcel_carrier_id",
        TEXT,
        NULLABLE_AT_TIMES,
        AT_TIMES,
        "Of an aggregator: the `carrier_id` of the carrier that it names.",
    ),
    Field("corrects", TEXT, NULLABLE, AT_TIMES, "Of a correction: the event that it is about."),
    Field(
        "anchor",
        TEXT,
        NULLABLE,
        AT_TIMES,
        "Of a value that came later: the event that it belongs to.",
    ),
    Field(
        "stamp",
        TEXT,
        NEVER,
        ALWAYS,
        "Of an enrichment: the carrier's own time of its update, as printed.",
    ),
)

PERSONAL: Final = (
    Field("description", TEXT, NULLABLE_AT_TIMES, NEVER, "Status text; only with scope `pii`."),
    Field("signed_by", TEXT, NULLABLE_AT_TIMES, NEVER, "Who signed; only with scope `pii`."),
    Field(
        "delivery_address",
        TEXT,
        NULLABLE_AT_TIMES,
        NEVER,
        "Where it was left; only with scope `pii`.",
    ),
    Field(
        "erased",
        FLAG,
        AT_TIMES,
        NEVER,
        "The personal fields are gone for good; only with scope `pii`.",
    ),
)

IN_STREAM: Final = (
    Field("version", COUNT, ALWAYS, ALWAYS, "Place in the shipment's stream, from 1."),
    Field("recorded_at", TIME, ALWAYS, ALWAYS, "When we knew it."),
    Field("sealed_at", TIME, NULLABLE, NEVER, "When the log sealed it; null until then."),
    Field("log_index", COUNT, NULLABLE, NEVER, "Place in the log; null until sealed."),
)

BOUND: Final = (
    Field(
        "format",
        {"type": "integer", "enum": list(range(1, FORMAT + 1))},
        NEVER,
        ALWAYS,
        "Of the entry.",
    ),
    Field("entry", {"type": "string", "enum": ["event"]}, NEVER, ALWAYS, "The kind of entry."),
    Field("shipment_id", UUID, NEVER, ALWAYS, "The shipment whose stream holds the event."),
    Field(
        "previous_hash",
        HASH,
        NEVER,
        ALWAYS,
        "Leaf hash of the shipment's event before; zeros for the first.",
    ),
    Field("message_id", UUID, NEVER, ALWAYS, "The message that said it."),
    Field("body_commitment", HASH, NEVER, ALWAYS, "Binds the body of the message."),
    Field("received_at", TIME, NEVER, ALWAYS, "When the message came."),
    Field("normalizer", TEXT, NEVER, ALWAYS, "The code that read it."),
    Field("normalizer_version", TEXT, NEVER, ALWAYS, "And its version."),
    Field(
        "notify", FLAG, NEVER, AT_TIMES, "False: submitted with the wish that nobody is notified."
    ),
    Field("part_commitment", HASH, NEVER, AT_TIMES, "Binds the sealed personal part."),
    Field("signer_digest", HASH, NEVER, AT_TIMES, "Keyed digest of the signer."),
)

FIELDS: Final = (*STATEMENT, *PERSONAL, *IN_STREAM, *BOUND)


def schema() -> dict[str, Any]:
    """Build the JSON Schema of this code's output.

    `printed` by the API (`/history`), `logged` as canonical bytes.
    """
    return {
        "$schema": DIALECT,
        "title": "The canonical event of statesvc",
        "description": "Only ever grows. Ignore fields that you do not know.",
        "$defs": {
            "printed": {
                **_object((field, field.printed) for field in FIELDS),
                "description": "As the API prints it.",
            },
            "logged": {
                **_object((field, field.logged) for field in FIELDS),
                "description": "As the log keeps it.",
            },
        },
    }
