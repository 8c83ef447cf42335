"""The calls of the role api, and the context for pages beside them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from events.crypto.keyring import Keyring
from statesvc.database.pool import Connections
from statesvc.http.keys.api_keys import Keys
from statesvc.http.keys.key_limits import KeyLimits
from statesvc.http.keys.signed_token import TokenSigner
from statesvc.http.operation import Route


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedCalls:
    """`readable`: connections while the database only reads, too; `readable_keys`: of these."""

    calls: Sequence[Route]
    pool: Connections
    readable: Connections
    keyring: Keyring = field(repr=False)
    keys: Keys
    readable_keys: Keys
    signer: TokenSigner
    limits: KeyLimits | None = None
