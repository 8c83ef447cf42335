"""A broker's login, as a subscription holds it: sealed under the master key, bound to the subscription, shown to nobody."""

from uuid import UUID

import orjson

from events.crypto.keyring import Keyring
from statesvc.delivery.outgoing import Login


def seal_login(keyring: Keyring, subscription_id: UUID, login: Login | None) -> bytes | None:
    """None for none."""
    if login is None:
        return None
    return keyring.master.seal(orjson.dumps({"user": login.user, "password": login.password}), _context(subscription_id))


def open_login(keyring: Keyring, subscription_id: UUID, sealed: bytes | None) -> Login | None:
    """`SealError` where it was sealed under a master key that is gone, or for another subscription."""
    if sealed is None:
        return None
    fields = orjson.loads(keyring.master.open(sealed, _context(subscription_id)))
    return Login(user=fields["user"], password=fields["password"])


def _context(subscription_id: UUID) -> bytes:
    return b"subscription-login\x1f" + subscription_id.bytes
