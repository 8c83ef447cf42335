"""`statesvc expectations`: what is expected of shipments; `... set CARRIER NAME=HOURS ...` states it for a carrier, its service, or all.

`set` shows first what it would do to the shipments that wait; nothing is changed without `--yes`.
"""

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any, Final

from psycopg import AsyncConnection
from pydantic import TypeAdapter, ValidationError

from projections.expectations import ExpectationRules
from statesvc.api.expectation_models import StatedHours
from statesvc.cli.arguments import carrier_named
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import actor, service_connection
from statesvc.expectations.rule_changes import NEVER, RulesChangedError, StatedBook, named_hours, state_rules, stated_rules
from statesvc.expectations.rule_preview import RulePreview, preview_rules
from statesvc.settings.service_settings import load_settings
from statesvc.shipments.expectation_rules import EVERYTHING, NoRuleScopeError, RuleScope, rule_scope

INHERIT: Final = "inherit"
_STALLED: Final = "stalled."
_STATED: Final = TypeAdapter(StatedHours)
Connection = AsyncConnection[Any]


def configure(parser: argparse.ArgumentParser) -> None:
    """What the commands take."""
    parser.add_argument("--json", action="store_true", help="for scripts")
    commands = parser.add_subparsers(dest="what", metavar="set")
    state = commands.add_parser(
        "set", help="state hours of a carrier, of one of its services, or of all; shows what it would change, and changes it with --yes"
    )
    state.add_argument("carrier", help="a carrier id, or all")
    state.add_argument(
        "hours",
        nargs="+",
        metavar="NAME=HOURS",
        help=f"such as stalled.in_transit=96, pickup_expiring={NEVER}, overdue={INHERIT}; what is not named stays as it was stated",
    )
    state.add_argument("--service", help="only shipments of this service of the carrier, as the carrier names it: 'UPS Ground'")
    state.add_argument("--why", default="", help="recorded in the log; needed with --yes")
    state.add_argument("--yes", action="store_true", help="make the change; without it, only show it")
    state.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Lists, previews or states."""
    if options.what is None:
        return asyncio.run(_list(as_json=options.json))
    options.scope = _scope(options.carrier, options.service)
    if options.yes and not options.why.strip():
        raise CommandError("--why is missing: it stands in the log", exit_code=2)
    return asyncio.run(_state(options))


def _scope(carrier: str, service: str | None) -> RuleScope:
    try:
        scope = rule_scope(carrier, service)
    except NoRuleScopeError as error:
        raise CommandError(str(error), exit_code=2) from error
    if scope != EVERYTHING:
        carrier_named(carrier)
    return scope


async def _list(*, as_json: bool) -> int:
    async with service_connection(load_settings()) as connection:
        stated = await stated_rules(connection)
    scopes = list(dict.fromkeys([EVERYTHING, *stated.rows]))
    if as_json:
        write_json([_described(stated, scope) for scope in scopes])
        return 0
    effective = [dict(named_hours(stated.book.of(*scope).hours())) for scope in scopes]
    own = [dict(named_hours(stated.of(scope).rules)) for scope in scopes]
    headings = ["HOURS", *map(_heading, scopes)]
    write_table(headings, [(name, *(_cell(name, *each) for each in zip(effective, own, strict=True))) for name in sorted(effective[0])])
    write_line("* stated; the others are inherited, at last from the service's defaults")
    return 0


def _heading(scope: RuleScope) -> str:
    if scope == EVERYTHING:
        return "all"
    return f"{scope.carrier_id}: {scope.service}" if scope.service else scope.carrier_id


def _cell(name: str, effective: dict[str, int | str], own: dict[str, int | str]) -> str:
    return f"{effective[name]}{'*' if name in own else ''}"


def _described(stated: StatedBook, scope: RuleScope) -> dict[str, Any]:
    row = stated.of(scope)
    return {
        "carrier_id": row.carrier_id,
        "service": row.service or None,
        "revision": row.revision,
        "stated": row.rules,
        "in_effect": stated.book.of(*scope).hours(),
        "changed_at": row.changed_at,
        "changed_by": row.changed_by,
        "why": row.why,
        "applied": row.is_applied,
    }


async def _state(options: argparse.Namespace) -> int:
    async with service_connection(load_settings()) as connection:
        rules = _merged((await stated_rules(connection)).of(options.scope).rules, options.hours)
        preview = await preview_rules(connection, options.scope, rules)
        revision = await _apply(connection, options, rules, preview) if options.yes else None
    if options.json:
        write_json({"rules": rules, "revision": revision, "preview": preview.model_dump(mode="json")})
        return 0
    write_line(f"would be stated: {', '.join(f'{name}={hours}' for name, hours in named_hours(rules)) or 'nothing'}")
    least = "at least " if preview.counts_capped else ""
    write_line(f"{least}{preview.rearmed} of {preview.shipments} unfinished shipments get another deadline")
    if preview.observed_at_once:
        kinds = ", ".join(f"{count} {kind}" for kind, count in preview.observed_at_once.items())
        write_line(f"{least}this would be observed at once, and notified: {kinds}")
    write_line("nothing was changed; --yes does it" if revision is None else f"revision {revision}; in effect with the next event")
    return 0


async def _apply(connection: Connection, options: argparse.Namespace, rules: dict[str, Any], preview: RulePreview) -> int:
    try:
        return await state_rules(connection, options.scope, rules, why=options.why, actor=actor(), replaces=preview.replaces)
    except RulesChangedError as error:
        raise CommandError(f"nothing was done: {error}; look at it again (`statesvc expectations`)") from error


def _merged(stated: Mapping[str, Any], given: list[str]) -> dict[str, Any]:
    """What was stated, with what is given."""
    flat: dict[str, int | str] = dict(named_hours(stated))
    for each in given:
        name, separator, said = each.partition("=")
        if not separator or name not in dict(named_hours(ExpectationRules().hours())):
            names = ", ".join(name for name, _ in named_hours(ExpectationRules().hours()))
            raise CommandError(f"{each!r} is no NAME=HOURS; the names are {names}", exit_code=2)
        if said == INHERIT:
            flat.pop(name, None)
        else:
            flat[name] = said
    document: dict[str, Any] = {}
    for name, hours in flat.items():
        place = document.setdefault("stalled", {}) if name.startswith(_STALLED) else document
        place[name.removeprefix(_STALLED)] = None if hours == NEVER else hours
    try:
        return dict(_STATED.validate_python(document))
    except ValidationError as error:
        first = error.errors()[0]
        raise CommandError(f"{'.'.join(map(str, first['loc']))}: {first['msg']} (hours, {NEVER} or {INHERIT})", exit_code=2) from error
