"""The addresses of a database, one per login role. They hold passwords and never show in a repr."""

from dataclasses import dataclass, field
from typing import Self

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo
from pydantic import SecretStr

from statesvc.database.password_command import choose_password_command
from statesvc.settings.carrier_settings import SettingError
from statesvc.settings.service_settings import DatabaseSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Dsns:
    """`service` for daily work, `owner` for migrations, `listen` past any pooler,
    `auditor` for `verify`.

    `superuser` is known of an embedded server only.
    """

    service: str = field(repr=False)
    owner: str = field(repr=False)
    listen: str = field(repr=False)
    superuser: str | None = field(default=None, repr=False)
    auditor: str | None = field(default=None, repr=False)

    @property
    def is_pooled(self) -> bool:
        """Another address for LISTEN means that the service's own leads to a pooler."""
        return self.listen != self.service

    @classmethod
    def from_settings(cls, settings: DatabaseSettings) -> Self | None:
        """Return the addresses of DATABASE_URL; None when it is not set: then the
        embedded server's hold.

        Raises SettingError.

        From then on this process asks the setting's command for the passwords that
        stand in none of them.
        """
        choose_password_command(settings.database_password_command)
        if settings.database_url is None:
            return None
        service = _well_formed("DATABASE_URL", settings.database_url)
        return cls(
            service=service,
            owner=_well_formed("STATESVC_OWNER_URL", settings.owner_url)
            if settings.owner_url
            else service,
            listen=_well_formed("STATESVC_LISTEN_URL", settings.listen_url)
            if settings.listen_url
            else service,
            auditor=_well_formed("STATESVC_AUDITOR_URL", settings.auditor_url)
            if settings.auditor_url
            else None,
        )


def _well_formed(variable: str, url: SecretStr) -> str:
    """Return the address if it can be parsed; the driver's own words may quote a password."""
    try:
        conninfo_to_dict(url.get_secret_value())
    except ProgrammingError:
        raise SettingError(
            f"{variable} is no address of a database: write"
            " postgresql://user:password@host:5432/database"
        ) from None
    return url.get_secret_value()


def database_name(settings: DatabaseSettings) -> str:
    """Return which database a command speaks of, for people: host and database, or the data folder.

    Never a password.
    """
    if settings.database_url is None:
        return str(settings.data_dir.absolute())
    given = conninfo_to_dict(settings.database_url.get_secret_value())
    if given.get("service"):
        return f"service {given['service']}"
    defaults = {
        option.keyword.decode(): option.val.decode()
        for option in Conninfo.get_defaults()
        if option.val is not None
    }
    host, port, name, user = (
        given.get(key) or defaults.get(key) for key in ("host", "port", "dbname", "user")
    )
    return f"{host or given.get('hostaddr') or 'localhost'}:{port}/{name or user}"
