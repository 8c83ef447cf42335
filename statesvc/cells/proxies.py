"""Configuration of nginx and Envoy that sends each call to its carrier's cell.

`carrier_id` stands in the path of every webhook and shipment; a call without one names its cell in a header, and is refused where it names
none: one cell's answer must not be taken for the answer of all. A cell that is away is answered for with 503, which carriers try again,
and never with 404, which is final to several of them.
"""

from importlib.resources import files
from typing import Final

import jinja2
import orjson

from statesvc.cells.directory import CellDirectory

CARRIER_PATHS: Final = ("webhooks", "shipments", "rollouts", "quotas", "carriers")
"""`/v1/<path>/<carrier_id>/...`."""
BODY_MEGABYTES_MAX: Final = 16
"""A proxy must not be stricter than the cells, which bound each carrier's bodies themselves."""
ANSWER_SECONDS: Final = 30
CELL_HEADER: Final = "Statesvc-Cell"
"""Names the cell of a call that has no carrier in its path."""
_AWAY: Final = {
    "type": "about:blank",
    "title": "The cell does not answer",
    "status": 503,
    "code": "cell_unavailable",
}
_UNNAMED: Final = {
    "type": "about:blank",
    "title": "The call names no cell",
    "status": 422,
    "code": "cell_unnamed",
    "detail": f"This call is about no single carrier: name the cell in the header {CELL_HEADER}, and ask each cell.",
}


def nginx_configuration(directory: CellDirectory, *, port: int) -> str:
    """Format a file for `http { include ...; }`."""
    return _rendered(
        "nginx.conf.jinja",
        directory,
        port=port,
        carriers=sorted(directory.carriers.items()),
        paths="|".join(CARRIER_PATHS),
        megabytes=BODY_MEGABYTES_MAX,
    )


def envoy_configuration(directory: CellDirectory, *, port: int) -> str:
    """Format a whole static configuration, in YAML."""
    prefix = f"^/v1/({'|'.join(CARRIER_PATHS)})"
    routes = [
        (f"{prefix}/{carrier}(/.*)?$", cell) for carrier, cell in sorted(directory.carriers.items())
    ]
    # all else with a carrier in it is the default cell's; a shipment by its id alone has none
    routes.append((f"{prefix}/.+$", directory.default))
    return _rendered(
        "envoy.yaml.jinja", directory, port=port, routes=routes, by_id="^/v1/shipments/[^/]+$"
    )


def _rendered(name: str, directory: CellDirectory, **values: object) -> str:
    text = files("statesvc.cells").joinpath(name).read_text("utf-8")
    # no HTML, and every value was validated
    environment = jinja2.Environment(  # noqa: S701
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(text).render(
        epoch=directory.epoch,
        default=directory.default,
        upstreams=_upstreams(directory),
        seconds=ANSWER_SECONDS,
        away=orjson.dumps(_AWAY).decode(),
        unnamed=orjson.dumps(_UNNAMED).decode(),
        header=CELL_HEADER,
        **values,
    )


def _upstreams(directory: CellDirectory) -> dict[str, list[str]]:
    """Return `host:port` of each server, by the name of the cell."""
    return {
        name: [url.removeprefix("http://") for url in cell.urls]
        for name, cell in directory.cells.items()
    }
