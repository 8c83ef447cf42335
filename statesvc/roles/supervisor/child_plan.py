"""What `up` shall run: which programs, where they listen, what they are told. Pure, except for a demo's random key."""

import ipaddress
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from statesvc.roles.supervisor.child_process import Program
from statesvc.settings.service_settings import Settings

API: Final = "api"
ROLES: Final = (API, "worker", "notifier", "sealer")
DEMO: Final = "demo"
LOOPBACK_NETWORKS: Final = "127.0.0.0/8,::1/128"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`ports` by role."""

    host: str
    ports: Mapping[str, int]
    settings: Settings
    demo_rate: float | None = None
    """Pushes a second of the sample carriers; None: no demo."""

    @property
    def url(self) -> str:
        """The API, as somebody on this machine reaches it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - compared, not bound
        return f"http://{f'[{host}]' if ':' in host else host}:{self.ports['api']}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def environment_of(plan: Plan, inherited: Mapping[str, str]) -> dict[str, str]:
    """What every child is told. The demo opens doors on the loopback only, and only where the settings leave them alone."""
    environment = {**inherited, "STATESVC_DATA_DIR": str(plan.settings.database.data_dir.absolute())}
    if plan.demo_rate is None:
        return environment
    environment.setdefault("STATESVC_BOOTSTRAP_KEY", f"demo-{secrets.token_urlsafe(24)}")
    if is_loopback(plan.host):
        environment.setdefault("STATESVC_ALLOW_UNSIGNED_WEBHOOKS", "1")
        environment.setdefault("STATESVC_SUBSCRIBER_ALLOW", LOOPBACK_NETWORKS)
    return environment


def programs(plan: Plan, environment: Mapping[str, str]) -> list[Program]:
    """One per role, in the order in which they are started, and the demo."""
    listed = [
        Program(
            name=role,
            command=[sys.executable, "-m", "statesvc", role, "--host", plan.host, "--port", str(plan.ports[role])],
            environment=environment,
        )
        for role in ROLES
    ]
    if plan.demo_rate is not None:
        command = [sys.executable, "-m", "statesvc.demo.run", "--url", plan.url, "--rate", str(plan.demo_rate)]
        told = {**environment, "STATESVC_DEMO_KEY": environment["STATESVC_BOOTSTRAP_KEY"]}
        listed.append(Program(name=DEMO, command=command, environment=told, restart=False))
    return listed
