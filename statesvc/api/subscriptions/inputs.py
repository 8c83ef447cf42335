"""Checks of callers' input about a subscription, and its stored form."""

from collections.abc import Sequence

from events.identity.recipes import number_of
from statesvc.api.subscriptions.members import GiveUpAfter, SubscriptionInput, WatchedShipment
from statesvc.api.subscriptions.receiver_fields import SecondSignature
from statesvc.delivery.addresses import Network
from statesvc.delivery.outgoing import Login
from statesvc.delivery.signing import OlderSignature
from statesvc.http.problem import Code, Problem, Violation
from statesvc.subscriptions.subscription_store import SubscriptionRequest
from statesvc.subscriptions.url import UrlRefusedError, checked_url


async def checked_address(text: str, allowed: Sequence[Network]) -> tuple[str, Login | None]:
    """Split the URL from its login. Raises the problem `invalid_request`."""
    try:
        return await checked_url(text, allowed)
    except UrlRefusedError as error:
        raise Problem(
            Code.INVALID_REQUEST,
            "the body breaks the contract",
            violations=[Violation("/body/url", str(error))],
        ) from None


async def requested(asked: SubscriptionInput, allowed: Sequence[Network]) -> SubscriptionRequest:
    """Return the request with its URL checked. Raises the problem `invalid_request`."""
    url, login = await checked_address(asked.url, allowed)
    return SubscriptionRequest(
        url=url,
        name=asked.name,
        description=asked.description,
        login=login,
        carriers=asked.carriers,
        statuses=None if asked.statuses is None else [status.value for status in asked.statuses],
        types=None if asked.types is None else [kind.value for kind in asked.types],
        shipments=watched(asked.shipments),
        parcels=asked.parcels,
        payload=asked.payload,
        pii=asked.pii,
        key_type=asked.key_type,
        headers=asked.headers,
        signature=older(asked.signature),
        rate_per_second=asked.rate_per_second,
        coalesce=asked.coalesce,
        give_up_after=ages(asked.give_up_after_seconds),
        max_age_seconds=asked.max_age_seconds,
    )


def older(asked: SecondSignature | None) -> OlderSignature | None:
    """Return the second signature as it is stored."""
    return (
        None
        if asked is None
        else OlderSignature(header=asked.header, encoding=asked.encoding, prefix=asked.prefix)
    )


def watched(shipments: Sequence[WatchedShipment] | None) -> list[str] | None:
    """Return `carrier_id/NUMBER` of each, the number normalized."""
    if shipments is None:
        return None
    return [
        f"{one.carrier_id}/{number_of(one.carrier_id, one.tracking_number)}" for one in shipments
    ]


def ages(asked: GiveUpAfter) -> dict[str, float]:
    """Return seconds by type, of the types that have a bound."""
    return {kind.value: seconds for kind, seconds in asked.items() if seconds is not None}
