"""A command that asks several services, as cells are: what they answer is shown as one, and who does not answer is named."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Final

from statesvc.cli.command_error import CommandError
from statesvc.cli.merged_output import MergedOutput, MergedTable, merging
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.service_profile import PROFILE, URL

_WRONG_USE: Final = 2


def several_profiles(options: argparse.Namespace) -> list[str]:
    """Return the profiles that were named, where there is more than one."""
    if options.service_url or (options.profile is None and os.environ.get(URL)):
        return []
    names = [name.strip() for name in (options.profile or os.environ.get(PROFILE) or "").split(",")]
    return names if len(names) > 1 else []


def run_for_each(
    run: Callable[[argparse.Namespace], int], options: argparse.Namespace, profiles: Sequence[str]
) -> int:
    """Run the command for each profile, then write what all answered; the exit code is the worst of theirs."""
    if getattr(options, "watch", False):
        raise CommandError("--watch takes one profile", exit_code=_WRONG_USE)
    worst = 0
    with merging() as merged:
        for profile in profiles:
            merged.profile = profile
            try:
                worst = max(
                    worst,
                    run(
                        argparse.Namespace(
                            **{**vars(options), "profile": profile, "only_reads": True}
                        )
                    ),
                )
            except CommandError as error:
                if error.exit_code == _WRONG_USE:
                    raise
                sys.stderr.write(f"statesvc: {profile}: {error}\n")
                worst = max(worst, error.exit_code)
    _write(merged, as_json=getattr(options, "json", False))
    return worst


def _write(merged: MergedOutput, *, as_json: bool) -> None:
    if as_json:
        write_json(merged.documents)
        return
    for part in merged.parts:
        if isinstance(part, MergedTable):
            write_table(part.headings, part.rows, wide=part.wide)
        else:
            write_line(part)
