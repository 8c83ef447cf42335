"""Which database a process works on: that of DATABASE_URL, or the embedded server that somebody else keeps running."""

from statesvc.database.dsns import Dsns
from statesvc.database.embedded import attach
from statesvc.settings.service_settings import DatabaseSettings


class NoDatabaseError(RuntimeError):
    """Neither is there."""

    def __init__(self, data_dir: str) -> None:
        super().__init__(f"no database: DATABASE_URL is not set, and no embedded server runs on {data_dir} (`statesvc up` starts one)")


def find_database(settings: DatabaseSettings) -> Dsns:
    """Its addresses. Raises NoDatabaseError."""
    dsns = Dsns.from_settings(settings) or attach(settings.data_dir)
    if dsns is None:
        raise NoDatabaseError(str(settings.data_dir.absolute()))
    return dsns
