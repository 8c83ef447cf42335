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
            "show findings, backlogs and pushes, the worst first",
            calls_api=True,
        ),
        "shipments": ListedCommand(
            "statesvc.cli.declared",
            "find, list and show parcels and their history",
            calls_api=True,
        ),
        "carriers": ListedCommand(
            "statesvc.cli.declared",
            "list carriers, teach their unknown codes",
            calls_api=True,
        ),
        "carriers list": ListedCommand(
            "statesvc.cli.carrier_list", "list this release's carriers with their settings"
        ),
        "subscriptions": ListedCommand(
            "statesvc.cli.declared", "create, change and check subscriptions", calls_api=True
        ),
        "queue": ListedCommand(
            "statesvc.cli.declared",
            "show waiting messages by carrier, and notifications",
            calls_api=True,
        ),
        "workers": ListedCommand(
            "statesvc.cli.declared",
            "list running processes with their last heartbeat",
            calls_api=True,
        ),
        "actions": ListedCommand(
            "statesvc.cli.declared", "list operators' actions with time and reason", calls_api=True
        ),
        "notices": ListedCommand(
            "statesvc.cli.declared",
            "list the service's notices, and mark them as seen",
            calls_api=True,
        ),
    },
    "Repair": {
        "doctor": ListedCommand(
            "statesvc.cli.doctor.doctor", "check this installation and explain each fault"
        ),
        "runbook": ListedCommand(
            "statesvc.cli.runbook_command", "print a page of the runbook, or list them"
        ),
        "dead-letters": ListedCommand(
            "statesvc.cli.declared",
            "list, replay or discard messages and notifications that failed",
            calls_api=True,
        ),
        "spool": ListedCommand(
            "statesvc.cli.spool_command",
            "list and drain webhooks kept while the database was away",
        ),
        "rollout": ListedCommand(
            "statesvc.cli.declared",
            "try another normalizer version; hold and release a carrier",
            calls_api=True,
        ),
        "rollout drill": ListedCommand(
            "statesvc.cli.rollout_drill",
            "rehearse the way back: set the share to 0 and restore it",
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
            "statesvc.cli.declared",
            "place and release legal holds on a parcel's data",
            calls_api=True,
        ),
        "erase": ListedCommand(
            "statesvc.cli.declared",
            "make a parcel's personal data permanently unreadable",
            calls_api=True,
        ),
    },
    "Roles": {
        "ingress": ListedCommand("statesvc.cli.role", "run one process that receives webhooks"),
        "api": ListedCommand("statesvc.cli.role", "run one process that answers the API"),
        "worker": ListedCommand(
            "statesvc.cli.role", "run one process that turns messages into events and state"
        ),
        "notifier": ListedCommand("statesvc.cli.role", "run one process that notifies subscribers"),
        "sealer": ListedCommand(
            "statesvc.cli.role", "run one process that seals and signs the log"
        ),
    },
    "Admin": {
        "keys": ListedCommand(
            "statesvc.cli.declared",
            "make, list and revoke API keys; rotate the master key",
            calls_api=True,
        ),
        "keys rotate-master": ListedCommand(
            "statesvc.cli.installation_keys",
            "seal all keys again under the first key of STATESVC_MASTER_KEY",
        ),
        "keys inbox": ListedCommand(
            "statesvc.cli.installation_keys",
            "print role, address and inbox key for workers of another fleet",
        ),
        "keys rotate-log": ListedCommand(
            "statesvc.cli.installation_keys",
            "make a new key, which signs checkpoints beside the old one",
        ),
        "keys retire-log": ListedCommand(
            "statesvc.cli.installation_keys",
            "retire an older key of the log and destroy its secret",
        ),
        "psql": ListedCommand("statesvc.cli.psql", "run psql with the service's connection"),
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
