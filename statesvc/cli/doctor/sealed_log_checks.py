"""What doctor says about the sealed log: whether somebody seals, whether its head is kept outside, whether its key opens."""

from collections.abc import AsyncIterator
from typing import Any, Final

from psycopg import AsyncConnection

from events.crypto.sealing import SealError
from statesvc.cli.doctor.finding import Finding, bad, good, warning
from statesvc.database.keyring_store import MasterKeyError
from statesvc.database.kms.kms import KmsError
from statesvc.database.queries import queries
from statesvc.log.signing_keys import SigningKeyError, open_signers, read_keys
from statesvc.log.timestamp_store import stamp_status
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import Settings

LATE_SECONDS: Final = 120.0
STAMP_INTERVALS_MAX: Final = 3

_SQL = queries("statesvc.cli.doctor", "sealed_log_checks")


async def examine_log(connection: AsyncConnection[Any], settings: Settings) -> AsyncIterator[Finding]:
    """Looks at the queue, the newest head and the keys; `statesvc verify` looks at the rest."""
    row = await (await connection.execute(_SQL["standing"])).fetchone()
    size, oldest_seconds = row if row is not None else (0, None)
    if oldest_seconds is not None and oldest_seconds > LATE_SECONDS:
        why = "is a sealer running, and does its /readyz say that it refuses?"
        yield bad("sealed log", f"entries wait since {oldest_seconds:,.0f} s: {why} Proofs, feed and stream stand still")
    elif size:
        yield good("sealed log", f"{size:,} entries are covered by its newest checkpoint; `statesvc verify` checks them")
    else:
        yield good("sealed log", "nothing was sealed yet")
    if settings.checkpoint.stamp_url is not None:
        yield await _stamps(connection, settings.checkpoint.stamp_seconds)
    if settings.checkpoint_file is None and settings.checkpoint.publish is None:
        yield warning(
            "sealed log",
            "STATESVC_SEALER_CHECKPOINT_FILE is not set, nor STATESVC_CHECKPOINT_PUBLISH: after a restore from an older backup the sealer "
            "would sign another history without noticing",
        )
    try:
        open_signers(await read_keys(connection), await open_master_keys(settings, connection))
    except (SealError, SigningKeyError) as error:
        yield bad("sealed log", f"its signing key cannot be used: {error}")
    except (MasterKeyError, KmsError):
        # said already
        return


async def _stamps(connection: AsyncConnection[Any], interval_seconds: float) -> Finding:
    found = await stamp_status(connection)
    if found is None or found.stamped_size == found.size:
        return good("time stamps", "every checkpoint there is lies below a stamped one, or is it")
    if found.age_seconds is None or found.age_seconds > STAMP_INTERVALS_MAX * interval_seconds:
        since = "never" if found.age_seconds is None else f"{found.age_seconds / 3600:,.1f} h ago"
        return warning(
            "time stamps", f"the last stamp came {since}: the sealer's log says what the authority answers (checkpoint_stamp_failed)"
        )
    return good("time stamps", f"the last one came {found.age_seconds / 60:,.0f} min ago, of the first {found.stamped_size:,} entries")
