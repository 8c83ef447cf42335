"""The console and the portal, as the role api serves them."""

from statesvc.addons.console.portal import routes as portal_routes
from statesvc.addons.console.routes import routes as console_routes
from statesvc.http.operation import Route
from statesvc.http.served_calls import ServedCalls


def served_pages(served: ServedCalls) -> list[Route]:
    return [
        *console_routes(
            served.calls,
            pool=served.pool,
            readable=served.readable,
            keys=served.readable_keys,
            signer=served.signer,
            limits=served.limits,
        ),
        *portal_routes(
            served.calls,
            pool=served.pool,
            keyring=served.keyring,
            keys=served.keys,
            limits=served.limits,
        ),
    ]
