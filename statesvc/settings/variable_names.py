"""Names of the environment variables that are settings.

An unknown variable with our prefix is most likely misspelt: it is refused.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import Final

from pydantic import AliasChoices
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from statesvc.settings import env_file
from statesvc.settings.carrier_settings import CARRIER_VARIABLES, SettingError
from statesvc.settings.renamed_variables import RENAMES, Renames

PREFIX: Final = "STATESVC_"

# Variables of the service that a command calls (`statesvc.cli.service_profile`).
_OF_COMMANDS: Final = frozenset(
    {"STATESVC_URL", "STATESVC_API_KEY", "STATESVC_PROFILE", "STATESVC_PROFILES"}
)
# Variables that psql reads (`statesvc migrate --roles`), still set where `migrate` follows in the
# same shell.
_OF_ROLES: Final = frozenset(
    {"STATESVC_OWNER_PASSWORD", "STATESVC_SERVICE_PASSWORD", "STATESVC_AUDITOR_PASSWORD"}
)
# Variables that are read before the settings, that `up` hands to its children, and that the
# project's own tests read.
_OTHERS: Final = (
    _OF_COMMANDS
    | _OF_ROLES
    | {
        env_file.VARIABLE,
        "STATESVC_DEMO_KEY",
        "STATESVC_SUPERVISED",
        "STATESVC_CORPUS",
        "STATESVC_HYPOTHESIS",
    }
)
_OTHER_PREFIXES: Final = ("STATESVC_TEST_", "STATESVC_SOAK_")
_KUBERNETES_ENDINGS: Final = (
    "_SERVICE_HOST",
    "_SERVICE_PORT",
    "_TCP",
    "_TCP_ADDR",
    "_TCP_PORT",
    "_TCP_PROTO",
)


class UnknownVariableError(SettingError):
    """Unknown variables with our prefix; the message names them and not their values."""


def variable_of(section: type[BaseSettings], name: str, field: FieldInfo) -> str:
    if isinstance(field.validation_alias, AliasChoices):
        return str(field.validation_alias.choices[0])
    return f"{section.model_config.get('env_prefix', '')}{name}".upper()


def unknown_variables(
    environment: Mapping[str, str],
    sections: Iterable[type[BaseSettings]],
    *,
    renames: Renames = RENAMES,
) -> list[str]:
    """Return variables with our prefix that the sections do not know, by present or old name."""
    # an old name that is accepted gets its own warning, not that of a typing error
    known = _known(sections) | renames.deprecated(environment).keys()
    return sorted(
        name
        for name in environment
        if name.startswith(PREFIX)
        and name not in known
        and name not in _OTHERS
        and not name.startswith((*CARRIER_VARIABLES, *_OTHER_PREFIXES))
    )


def sentences_on_unknown_variables(
    environment: Mapping[str, str],
    sections: Iterable[type[BaseSettings]],
    *,
    renames: Renames = RENAMES,
) -> list[str]:
    """Return a sentence with the remedy about each, without its value."""
    sections = list(sections)
    unknown = unknown_variables(environment, sections, renames=renames)
    refused = renames.refused(unknown)
    known = _known(sections)
    # a refused old name is no typing error: its sentence names the new one
    return [refused.get(name) or _what_to_do(name, known) for name in unknown]


def refuse_unknown_variables(
    environment: Mapping[str, str], sections: Iterable[type[BaseSettings]]
) -> None:
    if sentences := sentences_on_unknown_variables(environment, sections):
        raise UnknownVariableError("; ".join(sentences))


def _what_to_do(name: str, known: Iterable[str]) -> str:
    # Kubernetes sets these in every pod for a Service that is called `statesvc`
    if name.endswith(_KUBERNETES_ENDINGS):
        return (
            f"{name} is not a setting: Kubernetes sets it for a Service of that name; set"
            " `enableServiceLinks: false` in the pod"
        )
    # all begin alike, which would make any two of them close
    by_rest = {variable.removeprefix(PREFIX): variable for variable in (*known, *CARRIER_VARIABLES)}
    close = difflib.get_close_matches(name.removeprefix(PREFIX), by_rest, n=1, cutoff=0.75)
    hint = (
        f"Did you mean {by_rest[close[0]]}?"
        if close
        else "If it is your own, call it something that does not begin with STATESVC_."
    )
    return f"unknown setting {name}. {hint} `statesvc doctor --settings` lists all settings"


def _known(sections: Iterable[type[BaseSettings]]) -> set[str]:
    return {
        variable_of(section, name, field)
        for section in sections
        for name, field in section.model_fields.items()
    }
