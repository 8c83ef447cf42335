"""A setting that was renamed works under its old name for two minor releases, with a warning, and
is refused by name afterwards.
"""

from pathlib import Path
from typing import Final

import pytest

from statesvc.settings.known_settings import documented_settings
from statesvc.settings.renamed_variables import (
    RENAMES,
    AmbiguousVariableError,
    RemovedVariable,
    RenamedVariable,
    Renames,
)
from statesvc.settings.service_settings import SECTIONS
from statesvc.settings.variable_names import sentences_on_unknown_variables, unknown_variables

UPGRADE: Final = Path(__file__).parents[3] / "docs" / "upgrade.md"
ROWS: Final = (
    RenamedVariable(old="STATESVC_LISTEN_PORT", new="STATESVC_PORT", since="0.1"),
    RenamedVariable(old="STATESVC_PUSH_SECRET_", new="STATESVC_WEBHOOK_SECRET_", since="0.1"),
)
GONE: Final = (RemovedVariable(old="STATESVC_COLOUR", since="0.1", instead="the terminal chooses"),)
NEW: Final = Renames(ROWS, GONE, "0.1.0")
OLD: Final = Renames(ROWS, GONE, "0.3.0")


def test_what_is_set_under_an_old_name_is_taken_with_a_warning_that_shows_no_value() -> None:
    environment = {"STATESVC_LISTEN_PORT": "8000", "STATESVC_PUSH_SECRET_UPS": "hush-hush"}
    warnings = NEW.adopt(environment)
    assert (environment["STATESVC_PORT"], environment["STATESVC_WEBHOOK_SECRET_UPS"]) == (
        "8000",
        "hush-hush",
    )
    assert warnings == [
        "STATESVC_LISTEN_PORT is now STATESVC_PORT: set that. The old name is refused from 0.3 on",
        (
            "STATESVC_PUSH_SECRET_UPS is now STATESVC_WEBHOOK_SECRET_UPS: set that. The old name is"
            " refused from 0.3 on"
        ),
    ]
    assert unknown_variables(environment, SECTIONS, renames=NEW) == []


@pytest.mark.parametrize(
    ("version", "works"),
    [("0.1.0", True), ("0.2.9", True), ("0.3.0", False), ("0.10.0", False), ("1.0.0", False)],
)
# of the table above
def test_an_old_name_works_in_two_minor_releases(version: str, works: bool) -> None:  # noqa: FBT001
    environment = {"STATESVC_LISTEN_PORT": "8000"}
    renames = Renames(ROWS, GONE, version)
    assert bool(renames.adopt(environment)) is works
    assert ("STATESVC_PORT" in environment) is works
    assert bool(renames.refused(environment)) is not works


def test_a_removed_setting_is_accepted_without_effect_and_then_refused() -> None:
    environment = {"STATESVC_COLOUR": "hush-hush"}
    assert NEW.adopt(environment) == [
        "STATESVC_COLOUR has no effect: the terminal chooses. It is refused from 0.3 on"
    ]
    assert environment == {"STATESVC_COLOUR": "hush-hush"}
    assert unknown_variables(environment, SECTIONS, renames=NEW) == []
    assert sentences_on_unknown_variables(environment, SECTIONS, renames=OLD) == [
        "STATESVC_COLOUR was removed in 0.1: the terminal chooses"
    ]


def test_both_names_may_be_set_while_they_agree() -> None:
    assert len(NEW.adopt({"STATESVC_LISTEN_PORT": "8000", "STATESVC_PORT": "8000"})) == 1
    other = {"STATESVC_LISTEN_PORT": "8000", "STATESVC_PORT": "8001"}
    with pytest.raises(AmbiguousVariableError, match="remove STATESVC_LISTEN_PORT") as refused:
        NEW.adopt(other)
    assert "8001" not in str(refused.value)


def test_every_removed_setting_is_on_the_page_of_promises_and_set_nowhere() -> None:
    known = {setting.variable for setting in documented_settings()}
    page = UPGRADE.with_name("promises.md").read_text("utf-8")
    assert [row.old for row in RENAMES.removed if row.old in known or row.old not in page] == []


def test_every_rename_leads_to_a_setting_and_is_on_the_page_of_upgrades() -> None:
    known = {setting.variable.removesuffix("<CARRIER>") for setting in documented_settings()}
    assert [row for row in RENAMES.rows if row.new not in known or row.old in known] == []
    page = UPGRADE.read_text("utf-8")
    assert [row for row in RENAMES.rows if row.old not in page or row.new not in page] == []
