"""Every setting with its meaning, for `doctor`: what there is to set, and which variables of an environment no setting reads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from pydantic import AliasChoices
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from statesvc.settings.carrier_settings import CARRIER_VARIABLES
from statesvc.settings.service_settings import PREFIX, Settings


@dataclass(frozen=True, slots=True)
class DocumentedSetting:
    """One setting as `doctor --settings` prints it."""

    variable: str
    default: object
    meaning: str


def documented_settings() -> Iterator[DocumentedSetting]:
    """Every setting with its variable, default and meaning."""
    for section in fields(Settings):
        if isinstance(section.type, type) and issubclass(section.type, BaseSettings):
            for name, field in section.type.model_fields.items():
                yield DocumentedSetting(_variable(section.type, name, field), field.default, field.description or "")
    for variable, meaning in CARRIER_VARIABLES.items():
        yield DocumentedSetting(f"{variable}<CARRIER>", None, meaning)


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Variables with our prefix that no setting reads: most likely misspelt."""
    known = {setting.variable for setting in documented_settings()}
    return sorted(
        name for name in environment if name.startswith(PREFIX) and name not in known and not name.startswith(tuple(CARRIER_VARIABLES))
    )


def _variable(section: type[BaseSettings], name: str, field: FieldInfo) -> str:
    if isinstance(field.validation_alias, AliasChoices):
        return str(field.validation_alias.choices[0])
    return f"{section.model_config.get('env_prefix', '')}{name}".upper()
