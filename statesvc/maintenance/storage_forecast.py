"""Forecast of how long a disk lasts: what each table holds, what it grows by a day, and what takes rows out of it again. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from events.entry.kinds import EntryName

DAYS_MAX: Final = 3650
_DAYS_A_MONTH: Final = 30.4


class Leaving(StrEnum):
    """Event that ends the rows of a table."""

    LOG_ARCHIVE = "with its month of the log"
    BODY_ARCHIVE = "with its day of bodies"
    BODY_FILE = "with the archive file of its body"
    SETTLED = "when it is settled"
    EXPIRED = "after its time"
    NEVER = "never"


def _of(leaving: Leaving, *names: str) -> dict[str, Leaving]:
    return dict.fromkeys(names, leaving)


LEAVING: Final = MappingProxyType(
    _of(Leaving.LOG_ARCHIVE, *EntryName)
    | _of(Leaving.LOG_ARCHIVE, "notification", "notification_gap")
    | _of(Leaving.BODY_ARCHIVE, "body", "body_retained")
    | _of(Leaving.BODY_FILE, "message")
    | _of(
        Leaving.SETTLED,
        "inbox",
        "normalized",
        "outbox",
        "open_attempt",
        "unsealed",
        "subscription_failing",
        "sealing_refusal",
        "archive_refusal",
        "mapped_text",
    )
    | _of(
        Leaving.EXPIRED,
        "receipt",
        "message_attempt",
        "dead_letter",
        "notice",
        "ack_count",
        "objective_minute",
        "reconciled",
        "worker",
        "console_session",
        "personal_reading",
    )
    | _of(
        Leaving.EXPIRED,
        "rollout_batch",
        "rollout_count",
        "rollout_diff",
        "reader",
        "trial",
        "awaited_number",
        "test_attempt",
        "limiter_state",
        "shipment_touched",
    )
    # proofs, duplicates and states are answered for ever
    | _of(
        Leaving.NEVER,
        "batch",
        "sealed_batch",
        "subtree",
        "checkpoint",
        "checkpoint_stamp",
        "log_epoch",
    )
    | _of(Leaving.NEVER, "event_key", "conflict_key", "stream", "shipment", "shipment_spare")
    | _of(
        Leaving.NEVER,
        "shipment_references",
        "legal_hold",
        "body_archive",
        "log_archive",
        "log_resident",
    )
    # a row a carrier, a subscription, a key or a release
    | _of(
        Leaving.NEVER,
        "lane",
        "carrier_quota",
        "rollout",
        "code_mapping",
        "expectation_rules",
        "subscription",
        "throttle",
        "rebuild",
    )
    | _of(
        Leaving.NEVER,
        "api_key",
        "service_key",
        "root_key",
        "signing_key",
        "partitioned",
        "schema_migrations",
        "schema_functions",
    )
)
"""Event that ends the rows of every table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hot:
    """Retention of rows in the database by the settings; None: they stay."""

    log_months: int | None
    body_days: int | None
    file_months: int | None = None

    def days(self, leaving: Leaving) -> float | None:
        """Return the longest that a row stays: a month leaves whole, some months after its end."""
        if leaving is Leaving.LOG_ARCHIVE and self.log_months is not None:
            return (self.log_months + 1) * _DAYS_A_MONTH
        if leaving is Leaving.BODY_ARCHIVE and self.body_days is not None:
            return self.body_days + 1.0
        if (
            leaving is Leaving.BODY_FILE
            and self.body_days is not None
            and self.file_months is not None
        ):
            # a month goes whole, three months after the file of its last day
            return (self.file_months + 4) * _DAYS_A_MONTH
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """One table. `held_days`: the age of its oldest rows; `bytes_per_day`: what it takes in."""

    name: str
    size_bytes: int
    bytes_per_day: float
    held_days: float
    leaving: Leaving

    def growth(self, days: float, hot: Hot) -> float:
        """Return the bytes that it will have grown by after these days."""
        if self.leaving in (Leaving.SETTLED, Leaving.EXPIRED):
            return 0.0
        stays = hot.days(self.leaving)
        return self.bytes_per_day * (
            days if stays is None else min(days, max(0.0, stays - self.held_days))
        )


def days_left(tables: Sequence[TableSize], hot: Hot, *, free_bytes: int) -> int | None:
    """Return whole days until the free bytes are used; None: more than `DAYS_MAX`."""
    if _growth(tables, DAYS_MAX, hot) <= free_bytes:
        return None
    low, high = 0, DAYS_MAX
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _growth(tables, middle, hot) <= free_bytes else (low, middle)
    return low


def what_to_change(
    tables: Sequence[TableSize], hot: Hot, *, free_bytes: int, days: int
) -> list[str]:
    """Return what makes the disk last these days, the strongest means first; empty: it lasts."""
    if _growth(tables, days, hot) <= free_bytes:
        return []
    choices = (
        (
            "STATESVC_ARCHIVE_LOG_HOT_MONTHS=1: months of the log become Parquet files",
            replace(hot, log_months=1),
        ),
        (
            "STATESVC_ARCHIVE_DIR and STATESVC_ARCHIVE_HOT_DAYS=3: bodies become files after three days",
            replace(hot, body_days=min(hot.body_days or 3, 3)),
        ),
        (
            "STATESVC_ARCHIVE_KEEP_MONTHS=6: files of bodies go after six months, the rows of their messages three later",
            replace(hot, file_months=min(hot.file_months or 6, 6)),
        ),
    )
    before = _growth(tables, days, hot)
    saved = sorted(
        ((before - _growth(tables, days, other), text) for text, other in choices if other != hot),
        reverse=True,
    )
    advice = [f"{text}; {size_text(by)} less in {days} days" for by, text in saved if by > 0]
    least = _growth(
        tables,
        days,
        Hot(
            log_months=1,
            body_days=min(hot.body_days or 3, 3),
            file_months=min(hot.file_months or 6, 6),
        ),
    )
    if least > free_bytes:
        wanted, found = size_text(least), size_text(free_bytes)
        advice.append(
            f"a disk with {wanted} free instead of {found}, or a second cell: what never leaves takes so much in {days} days"
        )
    return advice


def _growth(tables: Sequence[TableSize], days: float, hot: Hot) -> float:
    return sum(table.growth(days, hot) for table in tables)


def size_text(count: float) -> str:
    """Format bytes for people, in powers of 1000 as disks are sold."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if count >= 10 or unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
