"""Statement of a merchant about a case: order, customer and address. Not the carrier's.

The log gets the case, the reason code and a salted commitment of the whole; the statement itself is
in the document alone.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from events.entry.canonical_json import canonical_bytes

_SALT_BYTES: Final = 32
_PRINTABLE: Final = r"^[^\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]*$"
_COUNTRY: Final = r"^[A-Za-z]{2}$"
_CONFIG: Final = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

Line = Annotated[str, Field(max_length=200, pattern=_PRINTABLE, description="One line of text.")]
Case = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/#-]{0,63}$",
        description=(
            "The number of the case or the dispute. It enters the log, so it must name no person."
        ),
        examples=["dp_1NsHZ2"],
    ),
]
ReasonCode = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]{0,31}$",
        description="The network's reason code. It enters the log.",
        examples=["13.1", "4855"],
    ),
]


def _country(value: object) -> object:
    """Name the expected form to a clerk who writes `USA` or `Germany`."""
    if isinstance(value, str) and not re.fullmatch(_COUNTRY, value.strip()):
        raise PydanticCustomError(
            "country", "should be the two letters of ISO 3166-1, such as US or DE"
        )
    return value


Country = Annotated[
    str, Field(pattern=_COUNTRY, description="ISO 3166-1 alpha-2."), BeforeValidator(_country)
]


class ShipTo(BaseModel):
    """Address that the order was to go to."""

    model_config = _CONFIG

    name: Line | None = None
    line1: Line | None = None
    line2: Line | None = None
    city: Line | None = None
    region: Line | None = None
    postal_code: Annotated[str, Field(max_length=16, pattern=_PRINTABLE)] | None = None
    country: Country | None = None

    @property
    def address(self) -> str:
        """Address in one line, without the name."""
        town = " ".join(filter(None, (self.city, self.region, self.postal_code)))
        return ", ".join(filter(None, (self.line1, self.line2, town, (self.country or "").upper())))


class Order(BaseModel):
    """Order of the customer."""

    model_config = _CONFIG

    number: Line
    placed_on: date | None = None
    description: Line | None = None
    amount: (
        Annotated[
            str, Field(pattern=r"^[0-9]{1,12}(\.[0-9]{1,3})? [A-Z]{3}$", examples=["129.90 EUR"])
        ]
        | None
    ) = None


class Customer(BaseModel):
    """Buyer."""

    model_config = _CONFIG

    name: Line | None = None
    email: Line | None = None
    phone: Line | None = None
    ip_address: Annotated[str, Field(max_length=45, pattern=r"^[0-9A-Fa-f.:]*$")] | None = None


class Merchant(BaseModel):
    """Seller, as the cardholder's statement names it."""

    model_config = _CONFIG

    name: Line
    descriptor: Line | None = None
    contact: Line | None = None


class MerchantStatement(BaseModel):
    """The whole of it. Only the case is required."""

    model_config = _CONFIG

    case: Case
    reason_code: ReasonCode | None = None
    order: Order | None = None
    ship_to: ShipTo | None = None
    customer: Customer | None = None
    merchant: Merchant | None = None

    def salted(self) -> dict[str, Any]:
        """Return the statement as a bundle holds it, with the salt of its commitment."""
        return {
            "statement": self.model_dump(mode="json", exclude_none=True),
            "salt": secrets.token_hex(_SALT_BYTES),
        }


def statement_commitment(stated: Mapping[str, Any]) -> str:
    """Return the commitment in a bundle's `stated`.

    SHA-256 over the salt and the statement's canonical JSON (RFC 8785).
    """
    return hashlib.sha256(
        bytes.fromhex(stated["salt"]) + canonical_bytes(stated["statement"])
    ).hexdigest()


def read_statement(bundle: Mapping[str, Any]) -> MerchantStatement | None:
    """Read the statement in a bundle."""
    stated = bundle.get("stated")
    return None if stated is None else MerchantStatement.model_validate(stated["statement"])
