"""Every setting with its meaning, for `doctor`."""

from collections.abc import Iterator
from dataclasses import dataclass

from statesvc.settings.carrier_settings import CARRIER_VARIABLES
from statesvc.settings.service_settings import SECTIONS
from statesvc.settings.variable_names import variable_of


@dataclass(frozen=True, slots=True)
class DocumentedSetting:
    """One setting as `doctor --settings` prints it."""

    variable: str
    default: object
    meaning: str


def documented_settings() -> Iterator[DocumentedSetting]:
    """Every setting with its variable, default and meaning."""
    for section in SECTIONS:
        for name, field in section.model_fields.items():
            yield DocumentedSetting(variable_of(section, name, field), field.default, field.description or "")
    for variable, meaning in CARRIER_VARIABLES.items():
        yield DocumentedSetting(f"{variable}<CARRIER>", None, meaning)
