"""Texts of the answers about keys and tombstones."""

from collections.abc import Iterator
from typing import Final

from statesvc.http.views import Answer, Denied

# Consequence of having no place for tombstones.
NO_PLACE: Final = (
    "A RESTORE FROM A BACKUP WOULD UNDO IT: no place outside the database is configured"
    " (STATESVC_CHECKPOINT_PUBLISH, or STATESVC_SEALER_CHECKPOINT_FILE); note it elsewhere, and"
    " repeat it after a restore"
)


def revoked(answer: Answer) -> Iterator[str]:
    yield f"Key {answer['key_id']} is revoked; processes that know it take it for up to 5 s more."
    if not answer["tombstones"]:
        yield NO_PLACE
    for subscription_id in answer["disabled_subscriptions"]:
        yield (
            f"Subscription {subscription_id} is disabled: no live key of its owner covers it;"
            " `statesvc keys create --owner` makes one."
        )


def no_log_key(page: Answer) -> Iterator[str]:
    if not page["items"]:
        yield Denied("the log has no key yet: the sealer makes it when it starts")
