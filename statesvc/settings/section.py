"""What the classes of settings have in common: types of values, and how they are read."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import NoDecode, SettingsConfigDict

from statesvc.settings.bucket import checked_place
from statesvc.settings.carrier_settings import Network, split
from statesvc.settings.variable_names import PREFIX

PositiveInt = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Port = Annotated[int, Field(ge=0, le=65535)]
Place = Annotated[str, Field(max_length=2000), AfterValidator(checked_place)]
"""A folder, or a place in an object store."""


def _split_text(value: object) -> object:
    return split(value) if isinstance(value, str) else value


Words = Annotated[frozenset[str], NoDecode, BeforeValidator(_split_text)]
Networks = Annotated[tuple[Network, ...], NoDecode, BeforeValidator(_split_text)]


def config(section: str = "") -> SettingsConfigDict:
    """How a class reads its variables: `STATESVC_`, the section, the field."""
    return SettingsConfigDict(
        env_prefix=PREFIX + section,
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )
