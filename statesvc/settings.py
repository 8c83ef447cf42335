"""The settings: environment variables with the prefix `STATESVC_`, and `DATABASE_URL`.

One small class per part of the service; `load_settings()` reads them all, once, in the composition root. Each field's
docstring is its documentation (`statesvc doctor --settings` prints it) and names the unit. Secrets never show in a repr.
"""

import base64
import ipaddress
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AliasChoices, BeforeValidator, Field, SecretStr, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

PREFIX: Final = "STATESVC_"
WEBHOOK_SECRET_PREFIX: Final = "STATESVC_WEBHOOK_SECRET_"  # noqa: S105 - the name of a variable, not a secret

WEBHOOK_IPS_PREFIX: Final = "STATESVC_WEBHOOK_IPS_"
WEBHOOK_JWKS_PREFIX: Final = "STATESVC_WEBHOOK_JWKS_"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
PositiveInt = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Port = Annotated[int, Field(ge=0, le=65535)]


def _split(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _split_text(value: object) -> object:
    return _split(value) if isinstance(value, str) else value


class SettingError(ValueError):
    """A variable of one carrier holds what it must not; the message names it and not its value."""


Words = Annotated[frozenset[str], NoDecode, BeforeValidator(_split_text)]
Networks = Annotated[tuple[Network, ...], NoDecode, BeforeValidator(_split_text)]


def _config(section: str = "") -> SettingsConfigDict:
    return SettingsConfigDict(
        env_prefix=PREFIX + section,
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )


class DatabaseSettings(BaseSettings):
    """Where the events are kept."""

    model_config = _config()

    database_url: SecretStr | None = Field(default=None, validation_alias=AliasChoices("DATABASE_URL"))
    """PostgreSQL 16 or later, as the service's own role. Without it the service starts an embedded server under STATESVC_DATA_DIR."""
    owner_url: SecretStr | None = None
    """The same database as the role that owns the tables, for migrations, partitions, archive and rebuild. Default: DATABASE_URL."""
    listen_url: SecretStr | None = None
    """The same database past the pooler, for LISTEN and advisory locks. Set where DATABASE_URL leads through one. Default: that one."""
    data_dir: Path = Path(".statesvc")
    """Folder of the embedded server and of generated keys."""
    embedded_port: Port = 0
    """TCP port on 127.0.0.1 of the embedded server, for tools that can't use its socket. 0: none."""
    pool_connections: PositiveInt = 8
    """Connections per process, beside the one that listens."""
    prepared_statements: bool = True
    """False behind a pooler in transaction mode that can't carry prepared statements (PgBouncer before 1.22)."""


class KeySettings(BaseSettings):
    """What opens sealed data and the API."""

    model_config = _config()

    master_key: SecretStr | None = None
    """Base64 of 32 bytes; comma-separated during rotation, the first is current. Required with DATABASE_URL, otherwise generated."""
    bootstrap_key: SecretStr | None = None
    """A first API key with scope `admin`, until real keys are made."""
    backup_days: Annotated[int, Field(ge=0)] = 35
    """How long the oldest backup of the database is kept: an erasure is complete when the last copy of the key has expired with it."""


class HttpSettings(BaseSettings):
    """Listening, and going away."""

    model_config = _config()

    host: str = "127.0.0.1"
    """Address that the HTTP server binds."""
    port: Port = 8080
    """TCP port of the HTTP server. 0: any free one."""
    drain_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1
    """How long a stopping API serves on while /readyz says no: above the interval of your load balancer's probe."""
    grace_seconds: Seconds = 30
    """How long a stopping process may finish what it has begun, after that."""


class IngressSettings(BaseSettings):
    """Taking webhooks in."""

    model_config = _config("INGRESS_")

    acquire_seconds: Seconds = 0.5
    """Longest wait for a connection before the carrier is told to come back."""
    statement_seconds: Seconds = 1
    """Statement timeout; the tightest carrier gives up at 3 s."""
    memory_bytes_max: PositiveInt = 64 * 1024 * 1024
    """Bytes of bodies that one process holds before it sheds."""
    disk_free_bytes_min: Annotated[int, Field(ge=0)] = 1024 * 1024 * 1024
    """Free bytes on the disk of the embedded server below which webhooks are refused."""
    allow_unsigned_webhooks: Words = Field(default=frozenset(), validation_alias=AliasChoices("STATESVC_ALLOW_UNSIGNED_WEBHOOKS"))
    """Carriers, comma-separated, whose webhooks are taken without a secret; `1`: all."""

    trusted_proxies: Networks = Field(default=(), validation_alias=AliasChoices("STATESVC_TRUSTED_PROXIES"))
    """Networks (CIDR, comma-separated) of our own proxies: only their X-Forwarded-For says where a webhook comes from."""

    def allows_unsigned(self, carrier_id: str) -> bool:
        """Whether this carrier may push without a secret."""
        return "1" in self.allow_unsigned_webhooks or carrier_id in self.allow_unsigned_webhooks


class WorkerSettings(BaseSettings):
    """Turning messages into events."""

    model_config = _config("WORKER_")

    lease_seconds: Seconds = 30
    """How long a worker may hold messages before another takes them over."""
    batch_min: PositiveInt = 64
    """Messages per claim while there is little to do."""
    batch_max: PositiveInt = 512
    """Messages per claim under backlog."""
    claim_bytes_max: PositiveInt = 4 * 1024 * 1024
    """Bytes of bodies per claim."""
    acquire_seconds: Seconds = 5
    """Longest wait for a connection."""
    statement_seconds: Seconds = 20
    """Statement timeout."""
    lock_seconds: Seconds = 10
    """Lock timeout; below the lease."""
    idle_in_transaction_seconds: Seconds = 15
    """A worker frozen inside its transaction loses its connection after this; below the lease, or it would block its own rescue."""
    sweep_seconds: Seconds = 30
    """Interval of the safety sweep, for wake-ups that were lost."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.batch_min > self.batch_max:
            raise ValueError("STATESVC_WORKER_BATCH_MIN must not be above STATESVC_WORKER_BATCH_MAX")
        if max(self.lock_seconds, self.idle_in_transaction_seconds, self.statement_seconds) >= self.lease_seconds:
            raise ValueError(
                "STATESVC_WORKER_LEASE_SECONDS must be above the worker's STATEMENT_SECONDS, LOCK_SECONDS and IDLE_IN_TRANSACTION_SECONDS"
            )
        return self


class NotifierSettings(BaseSettings):
    """Telling subscribers."""

    model_config = _config("NOTIFIER_")

    in_flight_max: PositiveInt = 256
    """Requests to subscribers under way at a time, per process."""
    lease_seconds: Seconds = 30
    """How long a notifier may hold notifications before another takes them over; above the 15 s that an attempt may take."""
    sweep_seconds: Seconds = 30
    """Interval of the safety sweep, for wake-ups that were lost."""
    backlog_count_max: PositiveInt = 10_000
    """Notifications that may wait for one subscription. Beyond, the latest of each shipment stands for those before it."""
    backlog_age_seconds: Seconds = 24 * 3600
    """How long a notification may wait before a later one of its shipment stands for it."""
    subscriber_allow: Networks = Field(default=(), validation_alias=AliasChoices("STATESVC_SUBSCRIBER_ALLOW"))
    """Networks (CIDR, comma-separated) of subscribers that are not on the public internet."""

    @model_validator(mode="after")
    def _lease_outlives_an_attempt(self) -> Self:
        if self.lease_seconds <= 15:
            raise ValueError("STATESVC_NOTIFIER_LEASE_SECONDS must be above 15, the longest that an attempt takes")
        return self


class OperatorSettings(BaseSettings):
    """Telling whoever runs the service."""

    model_config = _config("OPERATOR_")

    url: Annotated[str | None, Field(pattern=r"^https?://\S+$", max_length=2000)] = None
    """URL to which each notice of `GET /v1/notices` is posted, signed like a notification. It may lie in any network. Default: none."""
    secret: SecretStr | None = None
    """`whsec_` and the base64 of 24 to 64 bytes that sign those; comma-separated during rotation, the first is current."""

    @model_validator(mode="after")
    def _signed(self) -> Self:
        if self.url is not None and not self.secrets:
            raise ValueError("STATESVC_OPERATOR_URL needs STATESVC_OPERATOR_SECRET: nothing is sent unsigned")
        return self

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """The keys that sign. `ValueError` where one is none."""
        texts = _split(self.secret.get_secret_value()) if self.secret is not None else ()
        return tuple(_webhook_key(text) for text in texts)


def _webhook_key(text: str) -> bytes:
    try:
        key = base64.b64decode(text.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    if not 24 <= len(key) <= 64:
        raise ValueError("STATESVC_OPERATOR_SECRET must be whsec_ and the base64 of 24 to 64 bytes")
    return key


class ArchiveSettings(BaseSettings):
    """Keeping bodies beyond their hot days."""

    model_config = _config("ARCHIVE_")

    dir: Path | None = None
    """Folder of the archived bodies, the same for every process. Default: `archive` in STATESVC_DATA_DIR; with DATABASE_URL none: then no
    body is ever archived."""
    hot_days: PositiveInt = 14
    """Whole days that bodies stay in the database."""
    keep_months: PositiveInt = 25
    """Months after which an archived day is deleted, but for what a legal hold stands on."""


class SealerSettings(BaseSettings):
    """Sealing and signing the log."""

    model_config = _config("SEALER_")

    interval_seconds: Seconds = 0.3
    """From one checkpoint to the next, at least. The first one after a pause comes at once."""
    sweep_seconds: Seconds = 30
    """Interval of the safety sweep, for wake-ups that were lost."""
    checkpoint_file: Path | None = None
    """Keeps the newest checkpoint outside the database: a restored backup is noticed. Default: with the embedded server in its folder."""
    origin: Annotated[str | None, Field(pattern=r"^[^\s+]+$", max_length=200)] = None
    """Name of the log in its checkpoints, like a URL without scheme; read once, when the first key is made. Default: one by chance."""


class StreamSettings(BaseSettings):
    """`GET /v1/stream`."""

    model_config = _config("STREAM_")

    clients_max: PositiveInt = 200
    """Streams per process."""
    clients_per_key_max: PositiveInt = 20
    """Streams of one API key per process."""
    send_seconds: Seconds = 10
    """How long a client may take nothing of what is sent to it before it is cut off."""


class TelemetrySettings(BaseSettings):
    """Seeing what happens."""

    model_config = _config()

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe log line that is written."""
    log_format: Literal["auto", "console", "json"] = "auto"
    """`auto`: console on a terminal, JSON elsewhere."""
    otlp_endpoint: str | None = None
    """URL of an OpenTelemetry collector for traces. Default: none, traces are not exported."""
    trace_ratio: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Share of traces that is sampled."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a process."""

    database: DatabaseSettings
    keys: KeySettings
    http: HttpSettings
    ingress: IngressSettings
    worker: WorkerSettings
    notifier: NotifierSettings
    operator: OperatorSettings
    archive: ArchiveSettings
    sealer: SealerSettings
    stream: StreamSettings
    telemetry: TelemetrySettings
    webhook_secrets_by_carrier: Mapping[str, tuple[SecretStr, ...]]
    webhook_networks: Mapping[str, tuple[Network, ...]] = field(default_factory=dict)
    """By upper-case carrier id, as the next."""
    webhook_key_sets: Mapping[str, str] = field(default_factory=dict)

    @property
    def checkpoint_file(self) -> Path | None:
        """Where the newest checkpoint is kept outside the database; beside the embedded server always."""
        if self.sealer.checkpoint_file is not None or self.database.database_url is not None:
            return self.sealer.checkpoint_file
        return self.database.data_dir / "checkpoint"

    def authenticates(self, carrier_id: str) -> bool:
        """Whether the carrier can prove itself: by a secret, published keys or its address."""
        name = carrier_id.upper()
        return name in self.webhook_secrets_by_carrier or name in self.webhook_networks or name in self.webhook_key_sets

    def webhook_secrets(self, carrier_id: str) -> tuple[str, ...]:
        """The carrier's live secrets, plain: one, or two during rotation; none when it has none."""
        return tuple(secret.get_secret_value() for secret in self.webhook_secrets_by_carrier.get(carrier_id.upper(), ()))


@dataclass(frozen=True, slots=True)
class Documented:
    """One setting as `doctor --settings` prints it."""

    variable: str
    default: object
    meaning: str


def load_settings() -> Settings:
    """Reads the environment. Raises pydantic's ValidationError, which names the fields and not their values, or SettingError."""
    return Settings(
        database=DatabaseSettings(),
        keys=KeySettings(),
        http=HttpSettings(),
        ingress=IngressSettings(),
        worker=WorkerSettings(),
        notifier=NotifierSettings(),
        operator=OperatorSettings(),
        archive=ArchiveSettings(),
        sealer=SealerSettings(),
        stream=StreamSettings(),
        telemetry=TelemetrySettings(),
        webhook_secrets_by_carrier=read_webhook_secrets(os.environ),
        webhook_networks=read_webhook_networks(os.environ),
        webhook_key_sets=read_webhook_key_sets(os.environ),
    )


def read_webhook_secrets(environment: Mapping[str, str]) -> dict[str, tuple[SecretStr, ...]]:
    """`STATESVC_WEBHOOK_SECRET_<CARRIER>`, comma-separated, by upper-case carrier id."""
    return {
        name.removeprefix(WEBHOOK_SECRET_PREFIX): secrets
        for name, text in environment.items()
        if name.startswith(WEBHOOK_SECRET_PREFIX) and (secrets := tuple(SecretStr(part) for part in _split(text)))
    }


def read_webhook_networks(environment: Mapping[str, str]) -> dict[str, tuple[Network, ...]]:
    """`STATESVC_WEBHOOK_IPS_<CARRIER>`, comma-separated CIDRs, by upper-case carrier id. Raises SettingError."""
    found = {}
    for name, text in _of_prefix(environment, WEBHOOK_IPS_PREFIX):
        try:
            found[name] = tuple(ipaddress.ip_network(part, strict=False) for part in _split(text))
        except ValueError:
            raise SettingError(f"{WEBHOOK_IPS_PREFIX}{name} must be networks such as 20.65.16.22/31, comma-separated") from None
    return found


def read_webhook_key_sets(environment: Mapping[str, str]) -> dict[str, str]:
    """`STATESVC_WEBHOOK_JWKS_<CARRIER>`, a URL, by upper-case carrier id. Raises SettingError."""
    found = dict(_of_prefix(environment, WEBHOOK_JWKS_PREFIX))
    for name, url in found.items():
        if not url.startswith("https://"):
            raise SettingError(f"{WEBHOOK_JWKS_PREFIX}{name} must be a https URL: whoever can change the keys can sign")
    return found


def _of_prefix(environment: Mapping[str, str], prefix: str) -> Iterator[tuple[str, str]]:
    return ((name.removeprefix(prefix), text.strip()) for name, text in environment.items() if name.startswith(prefix) and text.strip())


def documented_settings() -> Iterator[Documented]:
    """Every setting with its variable, default and meaning."""
    for section in fields(Settings):
        if isinstance(section.type, type) and issubclass(section.type, BaseSettings):
            for name, field in section.type.model_fields.items():
                yield Documented(_variable(section.type, name, field), field.default, field.description or "")
    yield Documented(
        f"{WEBHOOK_SECRET_PREFIX}<CARRIER>", None, "Secrets of a carrier's webhooks, comma-separated: two live ones during rotation."
    )
    yield Documented(
        f"{WEBHOOK_IPS_PREFIX}<CARRIER>",
        None,
        "Networks (CIDR, comma-separated) from which alone a carrier may push: the proof where it has no secret, beside a secret one more.",
    )
    yield Documented(f"{WEBHOOK_JWKS_PREFIX}<CARRIER>", None, "URL of the JSON Web Key Set with a carrier's public keys (shipengine).")


def _is_of_a_carrier(name: str) -> bool:
    return name.startswith((WEBHOOK_SECRET_PREFIX, WEBHOOK_IPS_PREFIX, WEBHOOK_JWKS_PREFIX))


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Variables with our prefix that no setting reads: most likely misspelt."""
    known = {setting.variable for setting in documented_settings()}
    return sorted(name for name in environment if name.startswith(PREFIX) and name not in known and not _is_of_a_carrier(name))


def _variable(section: type[BaseSettings], name: str, field: FieldInfo) -> str:
    if isinstance(field.validation_alias, AliasChoices):
        return str(field.validation_alias.choices[0])
    return f"{section.model_config.get('env_prefix', '')}{name}".upper()
