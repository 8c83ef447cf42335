"""Removed commands and options, with their replacements.

A row is all that a removal needs: the command line refuses it, and a test holds it to
docs/promises.md.
"""

from collections.abc import Mapping, Sequence
from typing import Final

# Sentences without a full stop, by the words of a command and its options.
REMOVED: Final[Mapping[str, str]] = {
    "archive query": "DuckDB reads the files of the archive: docs/archive-queries.md has its views",
    "backup check": (
        "`statesvc doctor` checks keys, heads, tombstones and archives; docs/backup.md has the "
        "checks of PostgreSQL's base backups and archiving"
    ),
    "carriers show": (
        "`statesvc carriers --json` has a carrier's settings, `statesvc rollout show`, `statesvc "
        "queue` and `statesvc status` what it does"
    ),
    "cell": (
        "docs/engines.md routes by carrier with nginx or Envoy, and moves an installation "
        "with PostgreSQL's own commands"
    ),
    "listen": (
        "a tunnel (`ssh -R`, cloudflared) lets the service reach your machine, and the client's "
        "`stream()` follows changes without one: docs/subscribers.md"
    ),
    "logs": (
        "`jq -r '[.timestamp, .level, .event] | join(\" \")'` shortens log lines, "
        "from `journalctl -o cat -u 'statesvc*'` or a container"
    ),
    "open": "the console is the service's address with /console, which `statesvc up` prints",
    "storage": (
        "docs/runbook/DiskFilling.md has the query for the size of each table "
        "and the one that predicts when the disk is full"
    ),
    "carriers map --export": (
        "add a row to the carrier's table by hand: docs/teaching-codes.md says how"
    ),
    "carriers map --list": "`statesvc carriers mappings [CARRIER]` lists them",
    "carriers map --show": "`statesvc carriers mappings --revision REVISION` shows a code's rows",
    "carriers map --renormalize": (
        "`statesvc carriers renormalize CARRIER REVISION` reads the history again"
    ),
    "carriers unmap --renormalize": (
        "`statesvc carriers renormalize CARRIER REVISION` reads the history again"
    ),
    "normalize --explain": (
        "change a value of the file and compare what `statesvc normalize CARRIER FILE` prints"
    ),
    "shovel --explain": (
        "`statesvc shovel --from FILE --mapping FILE --dry-run` says what becomes of each message"
    ),
    "shovel --pause": "SIGTERM ends a transfer after its current batch; start it again later",
    "shovel --resume": "start the transfer again: it goes on where it ended",
    "shovel --unacked": (
        "stop the old workers with TERM: Celery returns the tasks that they hold to the queue"
    ),
    "shovel --visibility-timeout": (
        "any Celery worker returns the tasks of killed ones; docs/shovel.md has the phases"
    ),
}


def refusal(words: Sequence[str], given: Sequence[str]) -> str | None:
    """Return the message for a removed command or option."""
    options = {word.partition("=")[0] for word in given if word.startswith("-")}
    for removed, instead in REMOVED.items():
        name = [word for word in removed.split() if not word.startswith("-")]
        if list(words[: len(name)]) == name and options.issuperset(
            {*removed.split()}.difference(name)
        ):
            return f"`statesvc {removed}` was removed: {instead}"
    return None
