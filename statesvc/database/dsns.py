"""The addresses of one database, one per role that logs in to it. They hold passwords and never show in a repr."""

from dataclasses import dataclass, field
from typing import Self

from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from statesvc.settings.service_settings import DatabaseSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Dsns:
    """`service` for daily work, `owner` for migrations, `listen` past any pooler, `auditor` for `verify`.

    `superuser` is known of an embedded server only.
    """

    service: str = field(repr=False)
    owner: str = field(repr=False)
    listen: str = field(repr=False)
    superuser: str | None = field(default=None, repr=False)
    auditor: str | None = field(default=None, repr=False)

    @property
    def is_pooled(self) -> bool:
        """Another address for LISTEN means that a pooler stands before the server at the service's own."""
        return self.listen != self.service

    @classmethod
    def from_settings(cls, settings: DatabaseSettings) -> Self | None:
        """Those of DATABASE_URL; None when it is not set: then the embedded server's hold."""
        if settings.database_url is None:
            return None
        service = settings.database_url.get_secret_value()
        return cls(
            service=service,
            owner=settings.owner_url.get_secret_value() if settings.owner_url else service,
            listen=settings.listen_url.get_secret_value() if settings.listen_url else service,
            auditor=settings.auditor_url.get_secret_value() if settings.auditor_url else None,
        )


def database_name(settings: DatabaseSettings) -> str:
    """Which database a command speaks of, for people: host and database, or the data folder. Never a password."""
    if settings.database_url is None:
        return str(settings.data_dir.absolute())
    given = conninfo_to_dict(settings.database_url.get_secret_value())
    if given.get("service"):
        return f"service {given['service']}"
    defaults = {option.keyword.decode(): option.val.decode() for option in Conninfo.get_defaults() if option.val is not None}
    host, port, name, user = (given.get(key) or defaults.get(key) for key in ("host", "port", "dbname", "user"))
    return f"{host or given.get('hostaddr') or 'localhost'}:{port}/{name or user}"
