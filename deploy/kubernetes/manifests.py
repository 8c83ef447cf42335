"""Writes the manifests for Kubernetes: `python -m deploy.kubernetes.manifests`.

A deployment, a service and a disruption budget for each role, and the job that migrates. The
database is yours, its addresses and the keys are in the secret `statesvc`; `docs/install.md` says
how to make it. What a managed one needs as files is in the secret `statesvc-database`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

import statesvc

FILE: Final = Path(__file__).with_name("statesvc.yml")
HEAD: Final = (
    "# written by python -m deploy.kubernetes.manifests; change manifests.py, or lay a"
    " kustomization over it\n"
)
IMAGE: Final = f"statesvc:{statesvc.__version__}"
# The job of this release: a job's image never changes, so that each release has its own, and the
# same one may be applied again.
MIGRATION: Final = f"statesvc-migrate-{statesvc.__version__.replace('.', '-')}"
# Time for which a job that ended stays to be read. Applied after that, it runs again, and finds
# nothing to do.
MIGRATION_SECONDS: Final = 600
PORT: Final = 8080
METRICS_PORT: Final = 9080
DRAIN_SECONDS: Final = 10
GRACE_SECONDS: Final = 30
USER: Final = 10001
DATABASE_FILES: Final = "/etc/statesvc/database"

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleShape:
    """Size of a role's deployment. `serves`: it is called from outside."""

    name: str
    replicas: int
    cpu: str
    memory: str
    memory_max: str
    serves: bool = False


ROLES: Final = (
    RoleShape(
        name="ingress", replicas=2, cpu="250m", memory="192Mi", memory_max="512Mi", serves=True
    ),
    RoleShape(name="api", replicas=2, cpu="250m", memory="256Mi", memory_max="1Gi", serves=True),
    RoleShape(name="worker", replicas=2, cpu="500m", memory="256Mi", memory_max="512Mi"),
    RoleShape(name="notifier", replicas=2, cpu="250m", memory="192Mi", memory_max="512Mi"),
    # one leads, the other takes over
    RoleShape(name="sealer", replicas=2, cpu="100m", memory="192Mi", memory_max="512Mi"),
)


def manifests() -> Iterator[Manifest]:
    """Iterate over all manifests, in the order in which they are applied."""
    yield _object("v1", "ConfigMap", "statesvc", data=_settings())
    yield _migration()
    for role in ROLES:
        yield _deployment(role)
        yield _service(role)
        yield _budget(role)
    yield _routes()


def text() -> str:
    written: str = yaml.safe_dump_all(manifests(), sort_keys=False, width=140)
    return HEAD + written


def _settings() -> dict[str, str]:
    return {
        "STATESVC_HOST": "0.0.0.0",  # noqa: S104 - within the pod
        "STATESVC_PORT": str(PORT),
        "STATESVC_METRICS_HOST": "0.0.0.0",  # noqa: S104 - within the pod; no route leads to it
        "STATESVC_METRICS_PORT": str(METRICS_PORT),
        "STATESVC_DATA_DIR": "/tmp/statesvc",  # noqa: S108 - a volume of the pod's own
        "STATESVC_DRAIN_SECONDS": str(DRAIN_SECONDS),
        "STATESVC_GRACE_SECONDS": str(GRACE_SECONDS),
    }


def _object(
    api_version: str,
    kind: str,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    **rest: Any,  # noqa: ANN401
) -> Manifest:
    metadata = {"name": name, "labels": {"app.kubernetes.io/name": "statesvc", **(labels or {})}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def _labels(role: RoleShape) -> dict[str, str]:
    return {"app.kubernetes.io/name": "statesvc", "app.kubernetes.io/component": role.name}


def _migration() -> Manifest:
    owner = {
        "name": "STATESVC_OWNER_URL",
        "valueFrom": {"secretKeyRef": {"name": "statesvc-owner", "key": "STATESVC_OWNER_URL"}},
    }
    container = {
        **_container("migrate", ["migrate"], memory="128Mi", memory_max="256Mi", cpu="100m"),
        "env": [owner],
    }
    template = {
        "metadata": {
            "labels": {
                "app.kubernetes.io/name": "statesvc",
                "app.kubernetes.io/component": "migrate",
            }
        },
        "spec": {**_pod([container]), "restartPolicy": "OnFailure"},
    }
    return _object(
        "batch/v1",
        "Job",
        MIGRATION,
        spec={
            "backoffLimit": 10,
            "ttlSecondsAfterFinished": MIGRATION_SECONDS,
            "template": template,
        },
    )


def _deployment(role: RoleShape) -> Manifest:
    container = {
        **_container(
            role.name, [role.name], memory=role.memory, memory_max=role.memory_max, cpu=role.cpu
        ),
        "ports": [
            {"name": "http", "containerPort": PORT},
            {"name": "metrics", "containerPort": METRICS_PORT},
        ],
        "startupProbe": {
            "httpGet": {"path": "/livez", "port": "http"},
            "periodSeconds": 2,
            "failureThreshold": 60,
        },
        "livenessProbe": {
            "httpGet": {"path": "/livez", "port": "http"},
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": 6,
        },
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": "http"},
            "periodSeconds": 3,
            "timeoutSeconds": 2,
            "failureThreshold": 2,
        },
    }
    # a release waits for its migration, which is compatible with the pods of the release before
    waiting = _container(
        "migrated", ["migrate", "--check"], memory="128Mi", memory_max="256Mi", cpu="100m"
    )
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": _labels(role)},
    }
    pod = {
        **_pod([container]),
        "initContainers": [waiting],
        "terminationGracePeriodSeconds": DRAIN_SECONDS + GRACE_SECONDS + 10,
        "topologySpreadConstraints": [spread],
    }
    annotations = {"prometheus.io/scrape": "true", "prometheus.io/port": str(METRICS_PORT)}
    spec = {
        "replicas": role.replicas,
        "selector": {"matchLabels": _labels(role)},
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
        },
        "template": {
            "metadata": {"labels": _labels(role), "annotations": annotations},
            "spec": pod,
        },
    }
    return _object(
        "apps/v1", "Deployment", f"statesvc-{role.name}", labels=_labels(role), spec=spec
    )


def _container(
    name: str, arguments: list[str], *, memory: str, memory_max: str, cpu: str
) -> Manifest:
    return {
        "name": name,
        "image": IMAGE,
        "args": arguments,
        "envFrom": [{"configMapRef": {"name": "statesvc"}}, {"secretRef": {"name": "statesvc"}}],
        # no limit of processor time: throttling makes acknowledgements late
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory_max}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a volume of the pod's own
            {"name": "database", "mountPath": DATABASE_FILES, "readOnly": True},
        ],
    }


def _pod(containers: list[Manifest]) -> Manifest:
    return {
        "automountServiceAccountToken": False,
        # else Kubernetes sets variables that begin as our settings do, which are refused
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": containers,
        "volumes": [
            {"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}},
            # the provider's certificate, and a password that is rotated there: `docs/managed.md`
            {"name": "database", "secret": {"secretName": "statesvc-database", "optional": True}},
        ],
    }


def _service(role: RoleShape) -> Manifest:
    # one without an address of its own for roles that only Prometheus calls
    kind: Manifest = {} if role.serves else {"clusterIP": "None"}
    ports = [
        {"name": "http", "port": PORT, "targetPort": "http"},
        {"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"},
    ]
    return _object(
        "v1",
        "Service",
        f"statesvc-{role.name}",
        labels=_labels(role),
        spec={**kind, "selector": _labels(role), "ports": ports},
    )


def _budget(role: RoleShape) -> Manifest:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": _labels(role)}}
    return _object(
        "policy/v1", "PodDisruptionBudget", f"statesvc-{role.name}", labels=_labels(role), spec=spec
    )


def _routes() -> Manifest:
    """Route webhooks to the processes that do nothing else, everything else to the API."""

    def path(prefix: str, role: str) -> Manifest:
        backend = {"service": {"name": f"statesvc-{role}", "port": {"name": "http"}}}
        return {"path": prefix, "pathType": "Prefix", "backend": backend}

    rule = {"http": {"paths": [path("/v1/webhooks", "ingress"), path("/", "api")]}}
    return _object("networking.k8s.io/v1", "Ingress", "statesvc", spec={"rules": [rule]})


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
