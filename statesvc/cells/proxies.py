"""Configuration of nginx and Envoy that sends each call to its carrier's cell, and what spans cells to the gateway.

Both route by the path alone: `carrier_id` stands in every URL of a webhook and a shipment. A cell that is away is answered for with 503,
which carriers try again, and never with 404, which is final to several of them.
"""

from importlib.resources import files
from typing import Final

import jinja2
import orjson

from statesvc.cells.directory import CellDirectory, DirectoryError

CARRIER_PATHS: Final = ("webhooks", "shipments", "rollouts", "allotments", "carriers")
"""`/v1/<path>/<carrier_id>/...`."""
BODY_MEGABYTES_MAX: Final = 16
"""A proxy must not be stricter than the cells, which bound each carrier's bodies themselves."""
ANSWER_SECONDS: Final = 30
_AWAY: Final = {"type": "about:blank", "title": "The cell does not answer", "status": 503, "code": "cell_unavailable"}


def nginx_configuration(directory: CellDirectory, *, port: int) -> str:
    """A file for `http { include ...; }`. Raises DirectoryError."""
    return _rendered(
        "nginx.conf.jinja",
        directory,
        port=port,
        carriers=sorted(directory.carriers.items()),
        paths="|".join(CARRIER_PATHS),
        megabytes=BODY_MEGABYTES_MAX,
    )


def envoy_configuration(directory: CellDirectory, *, port: int) -> str:
    """A whole static configuration, in YAML. Raises DirectoryError."""
    prefix = f"^/v1/({'|'.join(CARRIER_PATHS)})"
    routes = [(f"{prefix}/{carrier}(/.*)?$", cell) for carrier, cell in sorted(directory.carriers.items())]
    # a shipment by its id alone may lie in any cell; all else with a carrier in it that no cell names is the default cell's
    routes += [("^/v1/shipments/[^/]+$", "gateway"), (f"{prefix}/.+$", directory.default), ("^/.*$", "gateway")]
    return _rendered("envoy.yaml.jinja", directory, port=port, routes=routes)


def _rendered(name: str, directory: CellDirectory, **values: object) -> str:
    text = files("statesvc.cells").joinpath(name).read_text("utf-8")
    # no HTML, and every value was validated
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)  # noqa: S701
    return environment.from_string(text).render(
        epoch=directory.epoch,
        default=directory.default,
        upstreams=_upstreams(directory),
        seconds=ANSWER_SECONDS,
        away=orjson.dumps(_AWAY).decode(),
        **values,
    )


def _upstreams(directory: CellDirectory) -> dict[str, list[str]]:
    """`host:port` of each server, by the name of the cell; the gateway's under `gateway`."""
    if not directory.gateway:
        raise DirectoryError('the directory names no gateway: add a line `gateway = ["http://host:port"]`')
    if "gateway" in directory.cells:
        raise DirectoryError("a cell must not be called `gateway`")
    urls = {**{name: cell.urls for name, cell in directory.cells.items()}, "gateway": directory.gateway}
    return {name: [url.removeprefix("http://") for url in servers] for name, servers in urls.items()}
