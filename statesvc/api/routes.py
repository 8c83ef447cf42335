"""All calls of the read API and of the operators."""

from collections.abc import Sequence

from events.keyring import Keyring
from statesvc.api import dead_letters, log, queue, rollouts, shipments
from statesvc.api.rollouts import Wakes
from statesvc.http.keys import Connections
from statesvc.http.operation import Route


def routes(*, pool: Connections, keyring: Keyring, waker: Wakes) -> Sequence[Route]:
    """For the application that the role `api` serves."""
    return [
        *shipments.routes(pool, keyring),
        *log.routes(pool),
        *queue.routes(pool),
        *dead_letters.routes(pool),
        *rollouts.routes(pool, waker),
    ]
