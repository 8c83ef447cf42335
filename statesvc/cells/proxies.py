"""Configuration of nginx and Envoy that sends each call to its carrier's cell, and what spans cells to the gateway.

Both route by the path alone: `carrier_id` stands in every URL of a webhook and a shipment. A cell that is away is answered for with 503,
which carriers try again, and never with 404, which is final to several of them.
"""

from importlib.resources import files
from typing import Any, Final

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
    text = files("statesvc.cells").joinpath("nginx.conf.jinja").read_text("utf-8")
    # no HTML, and every value was validated
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)  # noqa: S701
    template = environment.from_string(text)
    return template.render(
        epoch=directory.epoch,
        default=directory.default,
        upstreams=_upstreams(directory),
        carriers=sorted(directory.carriers.items()),
        paths="|".join(CARRIER_PATHS),
        port=port,
        megabytes=BODY_MEGABYTES_MAX,
        seconds=ANSWER_SECONDS,
        away=orjson.dumps(_AWAY).decode(),
    )


def envoy_configuration(directory: CellDirectory, *, port: int) -> str:
    """A whole static configuration, in JSON. Raises DirectoryError."""
    upstreams = _upstreams(directory)
    prefix = f"^/v1/({'|'.join(CARRIER_PATHS)})"
    routes = [_route(f"{prefix}/{carrier}(/.*)?$", cell) for carrier, cell in sorted(directory.carriers.items())]
    # a shipment by its id alone may lie in any cell; all else with a carrier in it that no cell names is the default cell's
    routes += [_route("^/v1/shipments/[^/]+$", "gateway"), _route(f"{prefix}/.+$", directory.default), _route("^/.*$", "gateway")]
    manager = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "statesvc",
        "use_remote_address": True,
        "normalize_path": True,
        "route_config": {"name": f"epoch-{directory.epoch}", "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
            }
        ],
    }
    listener = {
        "name": "statesvc",
        "address": _socket_address("0.0.0.0", port),  # noqa: S104 - the proxy is what faces the network
        "filter_chains": [{"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}],
    }
    resources = {"listeners": [listener], "clusters": [_cluster(name, servers) for name, servers in upstreams.items()]}
    return orjson.dumps({"static_resources": resources}, option=orjson.OPT_INDENT_2).decode() + "\n"


def _upstreams(directory: CellDirectory) -> dict[str, list[str]]:
    """`host:port` of each, by the name of the cell; the gateway's under `gateway`."""
    if not directory.gateway:
        raise DirectoryError('the directory names no gateway: add a line `gateway = ["http://host:port"]`')
    if "gateway" in directory.cells:
        raise DirectoryError("a cell must not be called `gateway`")
    servers = {name: [url.removeprefix("http://") for url in cell.urls] for name, cell in directory.cells.items()}
    return {**servers, "gateway": [url.removeprefix("http://") for url in directory.gateway]}


def _route(regex: str, cluster: str) -> dict[str, Any]:
    # 0: no end, for streams; a cell ends its own calls
    return {"match": {"safe_regex": {"regex": regex}}, "route": {"cluster": cluster, "timeout": "0s"}}


def _cluster(name: str, servers: list[str]) -> dict[str, Any]:
    endpoints = [{"endpoint": {"address": _socket_address(*_split(server))}} for server in servers]
    return {
        "name": name,
        "type": "STRICT_DNS",
        "connect_timeout": "2s",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]},
    }


def _split(server: str) -> tuple[str, int]:
    host, _, port = server.rpartition(":")
    return host.strip("[]"), int(port)


def _socket_address(host: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port}}
