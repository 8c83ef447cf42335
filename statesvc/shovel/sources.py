"""Sources by their URL: the schemes that there are, checked before anything is taken."""

from collections.abc import Sequence
from typing import Final

from yarl import URL

from statesvc.shovel.amqp_connection import connect, existing, shown
from statesvc.shovel.amqp_source import AmqpSource
from statesvc.shovel.delayed_delivery import level_names
from statesvc.shovel.shovel_error import ShovelError, SourceLostError
from statesvc.shovel.source import Source

AMQP_SCHEMES: Final = ("amqp", "amqps")


async def make_source(url: str, queues: Sequence[str], *, delayed: str | None, prefetch: int) -> Source:
    """Raises ShovelError. `delayed`: the prefix of the queues of native delayed delivery; None: leave them alone."""
    place = parse_url(url)
    if place.scheme in AMQP_SCHEMES:
        return AmqpSource(place, await _with_delayed(place, queues, delayed), prefetch=prefetch)
    raise ShovelError(f"nothing is taken from {place.scheme or url!r}: use amqp://, amqps://, redis://, rediss:// or a file")


def parse_url(url: str) -> URL:
    """Raises ShovelError, which does not repeat the login."""
    try:
        place = URL(url)
    except ValueError:
        raise ShovelError("the broker's URL is none; percent-encode what is special in user and password") from None
    if place.scheme in AMQP_SCHEMES and not place.host:
        raise ShovelError("the broker's URL names no host")
    return place


async def _with_delayed(place: URL, queues: Sequence[str], delayed: str | None) -> list[str]:
    if delayed is None:
        if not queues:
            raise ShovelError("name the queues to take from: --queue NAME")
        return list(queues)
    try:
        connection = await connect(place)
        try:
            found = await existing(connection, level_names(delayed))
        finally:
            await connection.close()
    except SourceLostError as error:
        raise ShovelError(str(error)) from None
    if not found:
        raise ShovelError(f"{shown(place)} has no queues of native delayed delivery ({level_names(delayed)[0]} ...)")
    return [*queues, *found]
