"""Everything about one carrier's webhooks that can be prepared once: its schemes with their secrets, its ACK, its bounds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from aiohttp import web

from events.carriers.carrier import Carrier
from statesvc.http.problem import Code, Problem
from statesvc.ingress.authentication import Verifier
from statesvc.ingress.kept_headers import KeptHeaders
from statesvc.settings import WEBHOOK_SECRET_PREFIX, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """`unsigned`: taken without a secret, which holds only while the carrier has none."""

    carrier: Carrier
    verifier: Verifier = field(repr=False)
    kept_headers: KeptHeaders
    has_secret: bool
    unsigned: bool

    @classmethod
    def build(cls, carrier: Carrier, settings: Settings) -> Self:
        """The door as the settings have it."""
        secrets = settings.webhook_secrets(carrier.carrier_id)
        return cls(
            carrier=carrier,
            verifier=Verifier(carrier.authentication, secrets),
            kept_headers=KeptHeaders(carrier.authentication),
            has_secret=bool(secrets),
            unsigned=not secrets and settings.ingress.allows_unsigned(carrier.carrier_id),
        )

    def opens_by_head(self, request: web.Request) -> bool:
        """True where the body need not be read to know that the carrier sent it."""
        return self.unsigned or self.verifier.without_body(request.headers, request.query if self.verifier.reads_query else {})

    def refusal(self) -> Problem:
        """Why it stays closed, for the operator who reads the carrier's error report."""
        variable = WEBHOOK_SECRET_PREFIX + self.carrier.carrier_id.upper()
        if self.has_secret:
            detail = f"no signature or credential fits; it is checked with {variable}, on the bytes as sent"
            return Problem(Code.BAD_SIGNATURE, f"{detail}. An API key with scope `ingest` is taken too")
        return Problem(
            Code.UNSIGNED_CARRIER, f"set {variable} to the secret shared with this carrier, or push with an API key of scope `ingest`"
        )


Doors = Mapping[str, Door]


def build_doors(carriers: Iterable[Carrier], settings: Settings) -> Doors:
    """The doors by carrier id."""
    return {carrier.carrier_id: Door.build(carrier, settings) for carrier in carriers}
