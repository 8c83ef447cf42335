"""Checks that settings of single carriers name existing carriers.

A misspelt name would leave the right carrier closed, or open to anyone.
"""

import difflib
from collections.abc import Iterable, Iterator
from typing import Final

from events.carriers import CARRIERS
from statesvc.settings.carrier_settings import (
    CARRIER_VARIABLES,
    WEBHOOK_AUTH_PREFIX,
    WEBHOOK_IPS_PREFIX,
    WEBHOOK_JWKS_PREFIX,
    WEBHOOK_SECRET_PREFIX,
    ZONE_PREFIX,
    SettingError,
)
from statesvc.settings.service_settings import Settings

_ACCEPTED: Final = "accepted-carriers"


def unknown_carriers(settings: Settings) -> Iterator[str]:
    """Yield a sentence for each setting with an unknown carrier, or without a choice."""
    named = [
        *(WEBHOOK_SECRET_PREFIX + name for name in settings.webhook_secrets_by_carrier),
        *(WEBHOOK_IPS_PREFIX + name for name in settings.webhook_networks),
        *(WEBHOOK_JWKS_PREFIX + name for name in settings.webhook_key_sets),
        *(WEBHOOK_AUTH_PREFIX + name for name in settings.chosen_authentication),
        *(ZONE_PREFIX + name for name in settings.account_zones),
    ]
    known = {carrier_id.upper(): carrier_id for carrier_id in CARRIERS}
    for variable in sorted(named):
        prefix = next(each for each in CARRIER_VARIABLES if variable.startswith(each))
        name = variable.removeprefix(prefix)
        if name not in known:
            yield f"{variable} is for no carrier that is known{_hint(name, known)}"
        elif prefix == WEBHOOK_AUTH_PREFIX and not CARRIERS[known[name]].leaves_choice:
            yield (
                f"{variable} has nothing to choose: {known[name]} authenticates in its own way,"
                " which `statesvc carriers` names"
            )
    for name in sorted(settings.ingress.allow_unsigned_webhooks - {"1"} - set(CARRIERS)):
        yield (
            f"STATESVC_ALLOW_UNSIGNED_WEBHOOKS names {name}, which is no carrier that is"
            f" known{_hint(name, CARRIERS)}"
        )


def require_known_carriers(settings: Settings) -> None:
    """Check the carriers that settings name. Raises SettingError."""
    if unknown := list(unknown_carriers(settings)):
        raise SettingError("; ".join(unknown))


def note_accepted_carriers(settings: Settings) -> None:
    """Store beside the embedded server's data which carriers this service's settings let in, for
    commands in other shells.
    """
    accepted = sorted(filter(settings.authenticates, CARRIERS))
    (settings.database.data_dir / _ACCEPTED).write_text("".join(f"{each}\n" for each in accepted))


def accepted_carriers(settings: Settings) -> set[str]:
    """Return the carriers that the service on the embedded server lets in, by its own settings."""
    if settings.database.database_url is not None:
        return set()
    try:
        return set((settings.database.data_dir / _ACCEPTED).read_text().split())
    except OSError:
        return set()


def _hint(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f": did you mean {close[0]}?" if close else "; `statesvc carriers` lists them"
