"""What is written for proxies: nginx itself takes it; both send every path where the directory says."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from statesvc.cells.directory import DirectoryError, parse_directory
from statesvc.cells.proxies import CARRIER_PATHS, envoy_configuration, nginx_configuration
from tests.openapi_document import document
from tests.statesvc.cells.test_directory import GOOD
from tests.world.programs import required

DIRECTORY = parse_directory(GOOD, "cells.toml")


def test_nginx_takes_the_configuration(tmp_path: Path) -> None:
    nginx = required("nginx", "nginx-light")
    configuration = nginx_configuration(DIRECTORY, port=18080).replace("south.internal", "127.0.0.9")
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\naccess_log off;\nclient_body_temp_path {tmp_path}/body;\n{configuration}}}\n"
    )
    checked = subprocess.run(
        [nginx, "-t", "-e", f"{tmp_path}/error", "-p", tmp_path, "-c", tmp_path / "nginx.conf"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("path", "cell"),
    [
        ("/v1/webhooks/ups", "south"),
        ("/v1/webhooks/ups/oauth/token", "south"),
        ("/v1/webhooks/fedex", "north"),
        ("/v1/webhooks/upsx", "north"),
        ("/v1/webhooks/nobody", "north"),
        ("/v1/shipments/ups/1Z", "south"),
        ("/v1/shipments/ups/1Z/evidence", "south"),
        ("/v1/shipments/0c7e1d5e-8f0c-0000-0000-000000000000", "gateway"),
        ("/v1/shipments", "gateway"),
        ("/v1/rollouts/ups/diffs", "south"),
        ("/v1/events", "gateway"),
        ("/readyz", "gateway"),
        ("/", "gateway"),
    ],
)
def test_envoy_routes_each_path_by_the_first_route_that_fits(path: str, cell: str) -> None:
    resources = json.loads(envoy_configuration(DIRECTORY, port=18080))["static_resources"]
    (chain,) = resources["listeners"][0]["filter_chains"]
    (host,) = chain["filters"][0]["typed_config"]["route_config"]["virtual_hosts"]
    chosen = next(route for route in host["routes"] if re.fullmatch(route["match"]["safe_regex"]["regex"], path))
    assert chosen["route"]["cluster"] == cell
    assert {cluster["name"] for cluster in resources["clusters"]} == {"north", "south", "gateway"}


def test_a_directory_without_a_gateway_is_refused_with_what_to_add() -> None:
    without = parse_directory(GOOD.replace('gateway = ["http://127.0.0.1:8090"]', ""), "cells.toml")
    with pytest.raises(DirectoryError, match="add a line `gateway"):
        nginx_configuration(without, port=18080)


def test_each_call_about_a_carrier_goes_to_its_cell() -> None:
    """But for rules of what is expected: those of `all` are stated in each cell, which the header names."""
    about_carriers = {parts[2] for path in document()["paths"] if (parts := path.split("/"))[3:4] == ["{carrier_id}"]}
    assert about_carriers == {*CARRIER_PATHS, "expectations"}
