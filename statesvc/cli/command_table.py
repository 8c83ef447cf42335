"""Table of commands, in the groups of `statesvc --help`, each imported when it is called.

A row of two words is an action of a command, with a module of its own; other actions are declared
with their operations.
"""

from collections.abc import Mapping
from typing import Final

from statesvc.seams import ListedCommand, active_addons, left_out

_CORE: Final[Mapping[str, Mapping[str, ListedCommand]]] = {
    "Start": {
        "up": ListedCommand(
            "statesvc.cli.up", "run all roles, with a PostgreSQL of its own by default"
        ),
        "init": ListedCommand(
            "statesvc.cli.init", "write a file of all settings, with defaults and meanings"
        ),
        "migrate": ListedCommand("statesvc.cli.migrate", "bring the database's schema up to date"),
        "completion": ListedCommand(
            "statesvc.cli.completion", "print the completion script of a shell"
        ),
    },
    "Look": {
        "status": ListedCommand(
            "statesvc.cli.status",
            "what needs a human, what waits, who pushes; worst first",
            calls_api=True,
        ),
        "shipments": ListedCommand(
            "statesvc.cli.declared",
            "find, list and show parcels and their history",
            calls_api=True,
        ),
        "carriers": ListedCommand(
            "statesvc.cli.declared",
            "list and show carriers, teach their unknown codes",
            calls_api=True,
        ),
        "carriers list": ListedCommand(
            "statesvc.cli.carrier_list", "this release's carriers, as these settings have them"
        ),
        "carriers show": ListedCommand(
            "statesvc.cli.carrier_show",
            "one carrier: how it is authenticated, read and limited, what it pushed, what waits",
            calls_api=True,
        ),
        "subscriptions": ListedCommand(
            "statesvc.cli.declared", "who is notified, and with what success", calls_api=True
        ),
        "queue": ListedCommand(
            "statesvc.cli.declared",
            "messages that wait, by carrier, and notifications",
            calls_api=True,
        ),
        "workers": ListedCommand(
            "statesvc.cli.declared",
            "the running processes, and when each was last seen",
            calls_api=True,
        ),
        "actions": ListedCommand(
            "statesvc.cli.declared", "who did what, when and why", calls_api=True
        ),
        "notices": ListedCommand(
            "statesvc.cli.declared", "what the service wants you to know", calls_api=True
        ),
    },
    "Repair": {
        "doctor": ListedCommand(
            "statesvc.cli.doctor.doctor", "what is wrong with this installation, in plain words"
        ),
        "runbook": ListedCommand(
            "statesvc.cli.runbook_command", "what to do: a page of the runbook, or their list"
        ),
        "dead-letters": ListedCommand(
            "statesvc.cli.declared",
            "what gave up and waits for a human: replay or discard",
            calls_api=True,
        ),
        "spool": ListedCommand(
            "statesvc.cli.spool_command",
            "webhooks that were acknowledged while the database was away",
        ),
        "rollout": ListedCommand(
            "statesvc.cli.declared",
            "try another normalizer; hold and release a carrier",
            calls_api=True,
        ),
        "rollout drill": ListedCommand(
            "statesvc.cli.rollout_drill",
            "rehearse the way back from another fleet's share: to 0 and forth again",
            calls_api=True,
        ),
        "rebuild": ListedCommand(
            "statesvc.cli.rebuild_command",
            "rebuild a projection from the log, alongside live traffic",
        ),
    },
    "Evidence": {
        "log": ListedCommand(
            "statesvc.cli.log_fork", "continue the log after a restore that lost entries"
        ),
        "legal-hold": ListedCommand(
            "statesvc.cli.declared", "numbers whose data is exempt from retention", calls_api=True
        ),
        "erase": ListedCommand(
            "statesvc.cli.declared",
            "make a parcel's personal data unreadable, for ever",
            calls_api=True,
        ),
    },
    "Roles": {
        "ingress": ListedCommand(
            "statesvc.cli.role", "one process that takes webhooks, and nothing else"
        ),
        "api": ListedCommand("statesvc.cli.role", "one process that answers the API"),
        "worker": ListedCommand(
            "statesvc.cli.role", "one process that turns messages into events and state"
        ),
        "notifier": ListedCommand("statesvc.cli.role", "one process that notifies subscribers"),
        "sealer": ListedCommand("statesvc.cli.role", "one process that seals and signs the log"),
    },
    "Admin": {
        "keys": ListedCommand(
            "statesvc.cli.declared",
            "make, list and revoke API keys; rotate the master key",
            calls_api=True,
        ),
        "keys rotate-master": ListedCommand(
            "statesvc.cli.installation_keys",
            "seal everything again under the first key of STATESVC_MASTER_KEY",
        ),
        "keys inbox": ListedCommand(
            "statesvc.cli.installation_keys",
            "role, address and inbox key for the workers of another fleet",
        ),
        "keys rotate-log": ListedCommand(
            "statesvc.cli.installation_keys",
            "make a new key, which signs checkpoints alongside the old one",
        ),
        "keys retire-log": ListedCommand(
            "statesvc.cli.installation_keys",
            "have an older key of the log sign no more; its secret is destroyed",
        ),
        "psql": ListedCommand("statesvc.cli.psql", "psql with the service's own connection"),
    },
}


# Actions of commands that are called by their name alone.
DEFAULT_ACTIONS: Final = {"carriers": "list"}


def command_groups() -> Mapping[str, Mapping[str, ListedCommand]]:
    """Return the commands of the core and of the add-ons that are on, by group."""
    return {
        title: {name: row for name, row in rows.items() if " " not in name}
        for title, rows in _rows().items()
    }


def commands() -> Mapping[str, ListedCommand]:
    return {name: row for group in command_groups().values() for name, row in group.items()}


def actions() -> Mapping[str, ListedCommand]:
    """Return the actions that have a module of their own, by command and action."""
    return {name: row for rows in _rows().values() for name, row in rows.items() if " " in name}


def _rows() -> Mapping[str, Mapping[str, ListedCommand]]:
    listed = {title: dict(group) for title, group in _CORE.items()}
    for addon in active_addons().values():
        for title, group in addon.commands.items():
            listed[title] |= group
    return listed


def left_out_by(command: str) -> str | None:
    """Return the add-on that is off and would bring this command, or this command and action."""
    for name, addon in left_out().items():
        if any(command in group for group in addon.commands.values()):
            return name
    return None
