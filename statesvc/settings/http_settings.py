"""The settings of the HTTP servers: listening, answering calls, taking webhooks in."""

from typing import Annotated, Final

from pydantic import AliasChoices, Field

from statesvc.settings.carrier_settings import split
from statesvc.settings.section import Networks, Port, PositiveInt, Seconds, Section, Words, config

METRICS_PORT_OFFSET: Final = 1000


class HttpSettings(Section):
    """Listening, and shutting down."""

    model_config = config()

    host: str = "127.0.0.1"
    """Address that the HTTP server binds, or several, comma-separated.

    `::` is every address, of IPv4 too.
    """
    port: Port = 8080
    """TCP port of the HTTP server. 0: any free port."""
    metrics_host: str = "127.0.0.1"
    """Address that serves `/metrics`, which needs no key: an address that only your Prometheus
    reaches.
    """
    metrics_port: Port | None = None
    """TCP port of `/metrics`; `statesvc up` has a single port for all roles.

    0: any free port. Default: STATESVC_PORT + 1000.
    """
    console_url: Annotated[str | None, Field(pattern=r"^https?://[^\s?#]+$", max_length=500)] = None
    """Where people open this service, as in https://statesvc.example.com: `statesvc status` leads
    to the runbook in its console. Default: none; the pages are named.
    """
    drain_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1
    """Time for which a stopping API serves on while /readyz fails: above the interval of your
    load balancer's probe.
    """
    head_seconds: Seconds = 10
    """Time that the head of a request may take to come, from the connection or from its first byte;
    then the connection is closed.
    """
    connections_max: PositiveInt | None = None
    """Connections of clients per process.

    Default: 10,000, and always fewer than the files that the process may open.
    """
    connections_per_address_max: PositiveInt | None = None
    """Connections from an address (of IPv6: a /64), except our own proxies
    (STATESVC_TRUSTED_PROXIES). Default: half of them.
    """
    grace_seconds: Seconds = 30
    """Time in which a stopping process may finish its work, after that."""

    def default_metrics_port(self, port: int) -> int:
        """Return the metrics port of a process that listens on `port`; 0: any free port.

        Processes of a machine get different ports.
        """
        return port + METRICS_PORT_OFFSET if 0 < port <= 65535 - METRICS_PORT_OFFSET else 0


class ApiSettings(Section):
    """Answering calls. Limits of a key hold for each process by itself."""

    model_config = config("API_")

    computing_processes: PositiveInt = 2
    """Processes for long computations (evidence, long audits); started on demand, ended
    after five idle minutes.
    """
    computing_waiting_max: PositiveInt = 64
    """Calls that may wait for these processes before the next is refused."""
    computed_per_key_max: PositiveInt = 4
    """Such calls of one API key at a time."""
    calls_per_key_max: PositiveInt = 100
    """Calls of one API key at a time, without streams."""
    calls_per_key_per_second: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1000
    """Calls of one API key a second, without streams; twice as many after a quiet second or two."""


class IngressSettings(Section):
    """Taking webhooks in."""

    model_config = config("INGRESS_")

    acquire_seconds: Seconds = 0.5
    """Longest wait for a connection before the carrier is asked to retry."""
    statement_seconds: Seconds = 1
    """Statement timeout; the tightest carrier gives up at 3 s."""
    memory_bytes_max: PositiveInt = 64 * 1024 * 1024
    """Bytes of bodies that a process holds; bodies beyond it wait unread, small ones
    in a lane of their own.
    """
    wait_seconds: Seconds = 30
    """Time that a body may wait, unread, for room in that memory before it is shed."""
    disk_free_bytes_min: Annotated[int, Field(ge=0)] = 1024 * 1024 * 1024
    """Free bytes on the disk of the embedded server below which webhooks are refused."""
    signature_age_seconds_max: Seconds = 2 * 3600
    """Age that a webhook's signature may have where it states its time (shippo, shipengine): a
    retry may bring its first stamp.
    """
    allow_unsigned_webhooks: Words = Field(
        default=frozenset(), validation_alias=AliasChoices("STATESVC_ALLOW_UNSIGNED_WEBHOOKS")
    )
    """Carriers, comma-separated, accepted without a secret for their webhooks; `1`: all."""

    trusted_proxies: Networks = Field(
        default=(), validation_alias=AliasChoices("STATESVC_TRUSTED_PROXIES")
    )
    """Networks (CIDR, comma-separated) of our own proxies: only their X-Forwarded-For names
    the sender of a webhook.
    """

    def allows_unsigned(self, carrier_id: str) -> bool:
        return "1" in self.allow_unsigned_webhooks or carrier_id in self.allow_unsigned_webhooks


def reached_at(host: str) -> str:
    """Return the address at which this machine reaches a server that listens on `host`."""
    first = listen_hosts(host)[0]
    # compared, not bound
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(first, first)  # noqa: S104


def in_url(host: str) -> str:
    """Return the address in the form of a URL."""
    return f"[{host}]" if ":" in host else host


def listen_hosts(host: str) -> tuple[str, ...]:
    """Return the addresses to listen on.

    `::` alone would be IPv6 alone; IPv4 gets its own socket, so that clients keep their
    addresses.
    """
    hosts = tuple(dict.fromkeys(split(host))) or ("",)
    has_ipv4 = any("." in name for name in hosts)
    # what `::` asks for
    return (*hosts, "0.0.0.0") if "::" in hosts and not has_ipv4 else hosts  # noqa: S104
