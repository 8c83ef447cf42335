"""Installations: the image, compose, Kubernetes, systemd.

Checked as far as that goes without running them.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from statesvc import __version__
from statesvc.roles.supervisor.child_plan import ROLES
from statesvc.settings.http_settings import HttpSettings
from statesvc.settings.service_settings import SECTIONS
from statesvc.settings.variable_names import unknown_variables
from tests.deploy.image_context import DOCKERFILE, ROOT, copied
from tests.world.programs import required

DEPLOY: Final = ROOT / "deploy"
UNIT: Final = DEPLOY / "systemd" / "statesvc@.service"
EXPOSURE_MAX: Final = 2.0
"""Score of `systemd-analyze security`: 10 is a service that may do anything."""

COMPOSE: Final = yaml.safe_load((DEPLOY / "docker" / "compose.yml").read_text("utf-8"))
MANIFESTS: Final = list(
    yaml.safe_load_all((DEPLOY / "kubernetes" / "statesvc.yml").read_text("utf-8"))
)
PROGRAMS: Final = Path(sys.executable).parent


def run(*command: str | Path) -> str:
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.usefixtures("own_processes")
def test_the_image_is_written_well() -> None:
    run(PROGRAMS / "hadolint", DOCKERFILE)


def test_the_image_gets_what_it_copies_and_nothing_else() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert sorted(line[1:] for line in ignored if line.startswith("!")) == sorted(copied())
    assert [line for line in ignored if not line.startswith(("#", "!"))] == ["*", "**/__pycache__"]


@pytest.mark.usefixtures("own_processes")
def test_compose_keeps_to_its_schema() -> None:
    run(
        PROGRAMS / "check-jsonschema",
        "--builtin-schema",
        "vendor.compose-spec",
        DEPLOY / "docker" / "compose.yml",
    )


def test_compose_mounts_files_that_exist_and_sets_settings_that_exist() -> None:
    mounts = [
        mount.split(":")[0]
        for service in COMPOSE["services"].values()
        for mount in service.get("volumes", ())
        if mount.startswith(".")
    ]
    assert [mount for mount in mounts if not (DEPLOY / "docker" / mount).exists()] == []
    assert unknown_variables(COMPOSE["services"]["statesvc"]["environment"], SECTIONS) == []


def test_prometheus_asks_up_where_its_metrics_are_and_nobody_else_can() -> None:
    (job,) = yaml.safe_load((DEPLOY / "docker" / "prometheus.yml").read_text("utf-8"))[
        "scrape_configs"
    ]
    port = HttpSettings().default_metrics_port(HttpSettings.model_fields["port"].default)
    assert job["static_configs"][0]["targets"] == [f"statesvc:{port}"]
    # within the network of compose
    assert COMPOSE["services"]["statesvc"]["environment"]["STATESVC_METRICS_HOST"] == "0.0.0.0"  # noqa: S104
    assert not any(str(port) in published for published in COMPOSE["services"]["statesvc"]["ports"])


def test_no_route_of_kubernetes_leads_to_the_metrics() -> None:
    (config,), (routes,) = of_kind("ConfigMap"), of_kind("Ingress")
    (rule,) = routes["spec"]["rules"]
    assert {path["backend"]["service"]["port"]["name"] for path in rule["http"]["paths"]} == {
        "http"
    }
    for deployment in of_kind("Deployment"):
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
        assert ports == {
            "http": config["data"]["STATESVC_PORT"],
            "metrics": config["data"]["STATESVC_METRICS_PORT"],
        }
        assert (
            deployment["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"]
            == ports["metrics"]
        )


def of_kind(kind: str) -> Iterator[dict[str, Any]]:
    return (manifest for manifest in MANIFESTS if manifest["kind"] == kind)


def test_the_manifests_keep_to_the_schemas_of_kubernetes() -> None:
    # loads parsers for seconds, which each process of a test run would spend
    import kubernetes_validate  # noqa: PLC0415

    for manifest in MANIFESTS:
        kubernetes_validate.validate(manifest, "1.31", strict=True)


def test_the_migration_can_be_applied_again_and_each_release_has_its_own() -> None:
    """The template of a job cannot be changed: applied under the same name, another
    image would be refused.
    """
    (job,) = of_kind("Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    version = container["image"].rpartition(":")[2]
    assert version == __version__
    assert job["metadata"]["name"] == f"statesvc-migrate-{version.replace('.', '-')}"
    assert job["spec"]["ttlSecondsAfterFinished"] > 0
    assert container["args"] == ["migrate"]


def test_each_role_has_a_deployment_a_service_and_a_budget_that_find_its_pods() -> None:
    for kind in ("Deployment", "Service", "PodDisruptionBudget"):
        found = list(of_kind(kind))
        assert [manifest["metadata"]["name"] for manifest in found] == [
            f"statesvc-{role}" for role in ROLES
        ]
        for manifest, deployment in zip(found, of_kind("Deployment"), strict=True):
            selector = manifest["spec"]["selector"]
            assert (
                selector.get("matchLabels", selector)
                == deployment["spec"]["template"]["metadata"]["labels"]
            )


def test_a_pod_has_time_to_drain_and_settings_that_exist() -> None:
    (config,) = of_kind("ConfigMap")
    assert unknown_variables(config["data"], SECTIONS) == []
    needs = float(config["data"]["STATESVC_DRAIN_SECONDS"]) + float(
        config["data"]["STATESVC_GRACE_SECONDS"]
    )
    for deployment in of_kind("Deployment"):
        pod = deployment["spec"]["template"]["spec"]
        assert pod["terminationGracePeriodSeconds"] > needs
        assert pod["enableServiceLinks"] is False


@pytest.mark.usefixtures("own_processes")
def test_the_unit_is_right_and_exposes_little(tmp_path: Path) -> None:
    analyze = required("systemd-analyze", "systemd")
    unit = tmp_path / "statesvc@up.service"
    unit.write_text(UNIT.read_text("utf-8").replace("/opt/statesvc/bin/statesvc", "/bin/true"))
    run(analyze, "verify", unit)
    exposure = re.search(
        r"Overall exposure level for \S+: ([\d.]+)",
        run(analyze, "security", "--offline=true", "--no-pager", unit),
    )
    assert exposure is not None
    assert float(exposure[1]) <= EXPOSURE_MAX
