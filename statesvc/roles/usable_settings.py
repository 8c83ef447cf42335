"""Checks before a role, or `up`, does anything: settings that a role could not work
with, in words, and once.
"""

import socket
from typing import Final

from statesvc.database.data_dir import require_usable_folder
from statesvc.database.dsns import Dsns
from statesvc.database.keyring_store import MasterKeyError
from statesvc.database.kms.kms import KmsError
from statesvc.database.postgres_programs import EmbeddedServerError, major_in
from statesvc.log.checkpoint_store import CheckpointStore, CheckpointStoreError, checkpoint_store_at
from statesvc.log.timestamp import NoTimestampsError, StampError, Trust, require_library
from statesvc.roles.carrier_names import require_known_carriers
from statesvc.roles.master_key import FILE, key_sources
from statesvc.settings.carrier_settings import SettingError
from statesvc.settings.http_settings import listen_hosts
from statesvc.settings.service_settings import CheckpointSettings, DatabaseSettings, Settings
from statesvc.telemetry.tracing import ExporterUnavailableError, require_exporters

_WILDCARDS: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared, not bound


def require_usable(settings: Settings, *, host: str, port: int) -> None:
    """Check the settings.

    Raises SettingError and UnusableFolderError. `host`, `port`: where it is to listen.
    """
    require_known_carriers(settings)
    _require_host(host)
    _require_own_port(settings, host, port)
    if Dsns.from_settings(settings.database) is None:
        require_usable_folder(settings.database.data_dir, writable=True)
    _require_master_key(settings)
    _require_postgres(settings.database)
    checkpoint_store(settings.checkpoint)
    stamp_trust(settings.checkpoint)
    try:
        require_exporters()
    except ExporterUnavailableError as error:
        raise SettingError(str(error)) from error


def checkpoint_store(settings: CheckpointSettings) -> CheckpointStore | None:
    """Return the store of checkpoints. Raises SettingError."""
    try:
        return None if settings.publish is None else checkpoint_store_at(settings.publish)
    except CheckpointStoreError as error:
        raise SettingError(f"STATESVC_CHECKPOINT_PUBLISH: {error}") from error


def stamp_trust(settings: CheckpointSettings) -> Trust | None:
    """Return the certificates that a stamp must lead to. Raises SettingError."""
    if settings.stamp_url is None or settings.stamp_cert is None:
        return None
    try:
        require_library()
        return Trust.parse(settings.stamp_cert.read_bytes())
    except OSError as error:
        raise SettingError(
            f"STATESVC_CHECKPOINT_STAMP_CERT: {settings.stamp_cert} cannot be read:"
            f" {error.strerror}"
        ) from error
    except NoTimestampsError as error:
        raise SettingError(f"STATESVC_CHECKPOINT_STAMP_URL: {error}") from error
    except StampError as error:
        raise SettingError(f"STATESVC_CHECKPOINT_STAMP_CERT: {error}") from error


def _require_postgres(settings: DatabaseSettings) -> None:
    if settings.database_url is None and settings.postgres_bin is not None:
        try:
            major_in(settings.postgres_bin.absolute())
        except EmbeddedServerError as error:
            raise SettingError(str(error)) from error


def _require_master_key(settings: Settings) -> None:
    """Check the master key; the embedded server's is made with its data."""
    keys, database = settings.keys, settings.database
    is_made_later = (
        database.database_url is None and keys.master_key is None and keys.kms_url is None
    )
    if is_made_later and not (database.data_dir / FILE).exists():
        return
    try:
        key_sources(settings)
    except (MasterKeyError, KmsError) as error:
        raise SettingError(str(error)) from error


def _require_own_port(settings: Settings, host: str, port: int) -> None:
    """Check that the service's port is not that of another setting on the same address."""
    hosts = {*listen_hosts(host), *_WILDCARDS}
    for setting, (other, fixed) in settings.fixed_ports.items():
        if fixed == port and (other in hosts or not _WILDCARDS.isdisjoint(listen_hosts(host))):
            raise SettingError(
                f"{setting} is {fixed}, which is also the port of the service (STATESVC_PORT, or"
                " --port): choose another for one of them"
            )


def _require_host(host: str) -> None:
    """Check the host: each address is tried with any port."""
    for name in listen_hosts(host):
        try:
            for family, kind, protocol, _, address in socket.getaddrinfo(
                name, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            ):
                with socket.socket(family, kind, protocol) as probe:
                    probe.bind(address)
        except OSError as error:
            raise SettingError(
                f"STATESVC_HOST, or --host: this machine cannot listen on {name!r}:"
                f" {error.strerror}"
            ) from None
