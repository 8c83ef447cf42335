"""`statesvc completion SHELL`: a script that completes commands, options and choices.

eval "$(statesvc completion bash)"                                        in ~/.bashrc
statesvc completion zsh > "${fpath[1]}/_statesvc"                         once
statesvc completion fish > ~/.config/fish/completions/statesvc.fish       once
"""

import argparse
from typing import Final

import shtab

from statesvc.cli import build_parser
from statesvc.cli.command_table import actions, commands
from statesvc.cli.output import write_line

SHELLS: Final = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="which shell")


def run(options: argparse.Namespace) -> int:
    parser, _ = build_parser({*commands(), *actions()})
    write_line(shtab.complete(parser, options.shell))
    return 0
