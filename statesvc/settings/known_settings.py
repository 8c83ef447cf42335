"""Every setting with its meaning, for `doctor` and `init`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from statesvc.settings import env_file
from statesvc.settings.carrier_settings import CARRIER_VARIABLES
from statesvc.settings.service_settings import SECTIONS
from statesvc.settings.variable_names import variable_of


@dataclass(frozen=True, slots=True)
class DocumentedSetting:
    """One setting as `doctor --settings` prints it and `init` writes it."""

    section: str
    """Subject of the section, a sentence."""
    variable: str
    default: object
    meaning: str


ENV_FILE: Final = DocumentedSetting("Where settings come from.", env_file.VARIABLE, None, env_file.MEANING)
"""Not one of the settings that such a file holds."""


def documented_settings() -> Iterator[DocumentedSetting]:
    """Yield every setting with its variable, default and meaning."""
    for section in SECTIONS:
        for name, field in section.model_fields.items():
            yield DocumentedSetting(section.__doc__ or "", variable_of(section, name, field), field.default, field.description or "")
    for variable, meaning in CARRIER_VARIABLES.items():
        yield DocumentedSetting("One variable for each carrier, by its upper-case id.", f"{variable}<CARRIER>", None, meaning)
