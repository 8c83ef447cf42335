"""Common parts of the classes of settings: types of values, and how they are read."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from statesvc.settings.bucket import checked_location
from statesvc.settings.carrier_settings import Network, split
from statesvc.settings.variable_names import PREFIX

PositiveInt = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Port = Annotated[int, Field(ge=0, le=65535)]
# A folder, or a place in an object store.
Place = Annotated[str, Field(max_length=2000), AfterValidator(checked_location)]


def _split_text(value: object) -> object:
    return split(value) if isinstance(value, str) else value


Words = Annotated[frozenset[str], NoDecode, BeforeValidator(_split_text)]
Networks = Annotated[tuple[Network, ...], NoDecode, BeforeValidator(_split_text)]


class Section(BaseSettings):
    """A part of the settings.

    Blanks around a value are removed: files of secrets end in a newline.
    """

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - pydantic names its arguments
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take arguments, then the environment, stripped; no other sources."""
        # files of secrets end in a newline, and what is blank then counts as unset
        if isinstance(env_settings, EnvSettingsSource):
            stripped = {
                name: value.strip()
                for name, value in env_settings.env_vars.items()
                if value is not None
            }
            env_settings.env_vars = {name: value for name, value in stripped.items() if value}
        return init_settings, env_settings


def config(section: str = "") -> SettingsConfigDict:
    """Return how a class reads its variables: `STATESVC_`, the section, the field."""
    return SettingsConfigDict(
        env_prefix=PREFIX + section,
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        # an error may end in a log, and the input may be a password
        hide_input_in_errors=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )
