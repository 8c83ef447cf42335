"""Table of commands, in the groups of `statesvc --help`, each imported when it is called."""

from collections.abc import Mapping
from typing import Final

from statesvc.seams import ListedCommand, active_addons, every_addon

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
            "statesvc.cli.carriers",
            "list and show carriers, teach their unknown codes",
            calls_api=True,
        ),
        "subscriptions": ListedCommand(
            "statesvc.cli.subscriptions", "who is notified, and with what success", calls_api=True
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
        "listen": ListedCommand(
            "statesvc.cli.listen_command",
            "forward changes to a receiver on your machine, signed",
            calls_api=True,
        ),
        "normalize": ListedCommand(
            "statesvc.cli.normalize", "print the events of a payload, without a database"
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
            "statesvc.cli.rollout",
            "try another normalizer; hold and release a carrier",
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
            "statesvc.cli.keys",
            "make, list and revoke API keys; rotate the master key",
            calls_api=True,
        ),
        "backup": ListedCommand("statesvc.cli.backup_command", "what a restore would miss"),
        "psql": ListedCommand("statesvc.cli.psql", "psql with the service's own connection"),
    },
}


def command_groups() -> Mapping[str, Mapping[str, ListedCommand]]:
    """Return the commands of the core and of the add-ons that are on, by group."""
    listed = {title: dict(group) for title, group in _CORE.items()}
    for addon in active_addons().values():
        for title, group in addon.commands.items():
            listed[title] |= group
    return listed


def commands() -> Mapping[str, ListedCommand]:
    return {name: one for group in command_groups().values() for name, one in group.items()}


def addon_of(command: str) -> str | None:
    """Return the add-on that brings a command; None: the core does, or there is no such command."""
    for name, addon in every_addon().items():
        if any(command in group for group in addon.commands.values()):
            return name
    return None
