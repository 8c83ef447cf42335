"""Each time stamp against the checkpoint that it is of, and against the authority's certificate where one is given."""

from datetime import timedelta
from typing import Any, Final

from psycopg import Connection

from statesvc.log.timestamp import StampError, Trust, check_stamp, read_stamp
from statesvc.log.timestamp_store import SQL
from statesvc.log.verify.fault import Fault

_CLOCKS_DIFFER: Final = timedelta(minutes=5)


def check_stamps(connection: Connection[Any], trust: Trust | None) -> tuple[int, list[Fault]]:
    """How many there are, and what is wrong with them. A stamp that is gone shows nowhere: keep those that matter outside."""
    faults = []
    rows = connection.execute(SQL["all"], binary=True).fetchall()
    for tree_size, stamped_at, authority, token, note, created_at in rows:
        row = f"tree_size={tree_size} stamped_at={stamped_at.isoformat()}"

        def fault(field: str, why: str, row: str = row) -> None:
            faults.append(Fault("checkpoint_stamp", row, field, why))

        if note is None:
            fault("tree_size", "there is no checkpoint of this size")
            continue
        try:
            stamp = read_stamp(token, note) if trust is None else check_stamp(token, note, trust)
        except StampError as error:
            fault("token", str(error))
            continue
        if stamp.stamped_at != stamped_at:
            fault("stamped_at", "is not the time that the stamp says")
        if stamp.authority != authority:
            fault("authority", "is not who signed the stamp")
        if created_at > stamp.stamped_at + _CLOCKS_DIFFER:
            faults.append(
                Fault("checkpoint", f"tree_size={tree_size}", "created_at", "is later than its time stamp: a clock was wrong, or set")
            )
    return len(rows), faults
