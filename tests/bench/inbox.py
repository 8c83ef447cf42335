"""Messages that wait before the clock starts, held back by the kill switch until it does."""

from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import Any, Final

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.bodies.sealed_message import seal_message
from statesvc.database.keyring_store import load_keyring, parse_master_keys
from statesvc.ingress.group_commit import put
from tests.acceptance.processes import MASTER_KEY
from tests.bench.server import Place
from tests.bench.traffic import Push

_GROUP: Final = 1_000
HOLD: Final = (
    "INSERT INTO statesvc.rollout (carrier_id, hold, changed_at, changed_by) VALUES ('*', true,"
    " now(), 'bench')"
)
HOLD_AGAIN: Final = "UPDATE statesvc.rollout SET hold = true"
RELEASE: Final = ("UPDATE statesvc.rollout SET hold = false", "NOTIFY statesvc_inbox")
SUBSCRIBE: Final = (
    "INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner, url,"
    " sealed_secrets) VALUES (gen_random_uuid(), now(), 'bench', 'bootstrap',"
    " 'https://subscriber.example', '{}')"
)
WAITS: Final = "SELECT EXISTS (SELECT FROM statesvc.inbox)"


def waiting(pushes: Callable[[], Iterable[Push]]) -> Callable[[Place], Awaitable[None]]:
    """Fill a database: these messages in the inbox, one subscription to everything, all carriers
    held.
    """

    async def fill(place: Place) -> None:
        await place.execute(HOLD, SUBSCRIBE)
        await put_all(place, pushes())

    return fill


async def put_all(place: Place, pushes: Iterable[Push]) -> None:
    """Seal and store messages, as ingress does."""
    async with await AsyncConnection.connect(place.service, autocommit=True) as connection:
        keyring = await keyring_of(connection)
        left = iter(pushes)
        while group := list(islice(left, _GROUP)):
            await put(
                connection,
                [seal_message(keyring, carrier_id, body, "{}") for carrier_id, body in group],
            )


async def keyring_of(connection: AsyncConnection[Any]) -> Keyring:
    """Return the keys of a database of this bench."""
    return await load_keyring(connection, parse_master_keys(MASTER_KEY))
