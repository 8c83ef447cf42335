"""The OpenAPI document of the service, without a service: `python -m tests.openapi_document FILE`
writes it. A test compares the two.
"""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, cast

import orjson

from statesvc import __version__
from statesvc.addons.stream.routes import stream_route
from statesvc.addons.stream.tickets import Tickets
from statesvc.api.call_examples import call_examples
from statesvc.api.event_documents import hooks
from statesvc.api.routes import routes as api_routes
from statesvc.api.served_context import served_context
from statesvc.api.submission.routes import routes as submission_routes
from statesvc.http.health import health_routes
from statesvc.http.openapi import build_document
from statesvc.http.operation import Route
from statesvc.ingress.webhooks import Webhooks

NOTHING: Final = cast("Any", None)


def calls() -> list[Route]:
    """Return all that the role `api` serves, with nothing behind them."""
    context = served_context(pool=NOTHING, keyring=NOTHING, waker=NOTHING, readings=NOTHING)
    return [
        *Webhooks(**{field.name: NOTHING for field in fields(Webhooks)}).routes,
        *_calls(submission_routes),
        *api_routes(context),
        stream_route(streams=NOTHING, tickets=object.__new__(Tickets)),
        *_calls(health_routes),
    ]


def document() -> dict[str, Any]:
    """Build what it serves at `/openapi.json`."""
    return build_document(calls(), version=__version__, hooks=hooks(), examples=call_examples())


def _calls(build: Callable[..., Sequence[Route]]) -> Sequence[Route]:
    """Return the calls with nothing behind them: their contracts do not depend on it."""
    return build(**dict.fromkeys(inspect.signature(build).parameters))


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(orjson.dumps(document(), option=orjson.OPT_INDENT_2))
