"""A file of settings in the common part of systemd's, Docker's and our format.

That is EnvironmentFile= of systemd and --env-file of Docker. A line is `NAME=value`, empty, or a
comment that begins with `#`. The value is literal: no quotes, no escapes, no expansion.
"""

import re
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

from statesvc.settings.carrier_settings import SettingError

VARIABLE: Final = "STATESVC_ENV_FILE"
MEANING: Final = (
    "File of settings, `NAME=value` a line (`statesvc init` writes one); what the environment sets"
    " wins. Or: `--env-file FILE`."
)

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def add_env_file(path: Path, environment: MutableMapping[str, str]) -> None:
    """Add the file's settings that the environment lacks.

    Raises SettingError, which names the line and never shows a value.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingError(f"the file of settings {path} cannot be read: {reason}") from None
    for name, value in parsed(text, str(path)).items():
        # the environment wins, as with systemd and Docker
        environment.setdefault(name, value)
    # processes started from here must have the same settings, even if the file changes
    environment.pop(VARIABLE, None)


def parsed(text: str, file: str) -> dict[str, str]:
    """Parse the variables of such a text. `file` is its name in errors. Raises SettingError."""
    found: dict[str, str] = {}
    # editors on Windows put a mark of byte order before the first name
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not _NAME.fullmatch(name):
            raise SettingError(f"{file}, line {number}: write NAME=value, without `export`")
        # systemd takes the last, Docker too, but a person who edits the first would not see it
        if name in found:
            raise SettingError(f"{file}, line {number}: {name} is set twice")
        # systemd removes quotes and Docker keeps them: the same file must mean the same everywhere
        if value[:1] in {'"', "'"} or "\\" in value or "\0" in value:
            raise SettingError(
                f"{file}, line {number}: the value of {name} must have no quotes around it and no"
                " backslash in it"
            )
        found[name] = value
    return found
