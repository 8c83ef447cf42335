"""Every setting with its meaning, for `doctor` and `init`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from statesvc.settings import env_file
from statesvc.settings.carrier_settings import CARRIER_VARIABLES
from statesvc.settings.renamed_variables import RENAMES, Renames
from statesvc.settings.service_settings import SECTIONS
from statesvc.settings.variable_names import variable_of


@dataclass(frozen=True, slots=True)
class DocumentedSetting:
    """A setting as `doctor --settings` prints it and `init` writes it."""

    section: str
    """Subject of the section, a sentence."""
    variable: str
    default: object
    meaning: str


# Not allowed in such a file.
ENV_FILE: Final = DocumentedSetting(
    "Where settings come from.", env_file.VARIABLE, None, env_file.MEANING
)


def documented_settings(*, renames: Renames = RENAMES) -> Iterator[DocumentedSetting]:
    """Yield every setting with its variable, default and meaning."""
    for section in SECTIONS:
        for name, field in section.model_fields.items():
            variable = variable_of(section, name, field)
            # a description is wrapped as the code is
            meaning = " ".join((field.description or "").split()) + _old_name(variable, renames)
            yield DocumentedSetting(section.__doc__ or "", variable, field.default, meaning)
    for prefix, meaning in CARRIER_VARIABLES.items():
        text = meaning + _old_name(prefix, renames)
        yield DocumentedSetting(
            "One variable for each carrier, by its upper-case id.", f"{prefix}<CARRIER>", None, text
        )


def _old_name(variable: str, renames: Renames) -> str:
    """Return a sentence where it had another name, which still works."""
    return "".join(
        f" Its old name {row.old} works before {row.refused_from}."
        for row in renames.rows
        if row.new == variable
    )
