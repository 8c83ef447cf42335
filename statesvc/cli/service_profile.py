"""Choice of the service that a command calls: flags, a named profile, or the environment.

Without any of them it is this machine's, in the command's own process.

Profiles are in a file, `~/.config/statesvc/profiles.toml` (or STATESVC_PROFILES):

    [production]
    url = "https://statesvc.example"
    key_file = "~/.config/statesvc/production.key"
"""

import argparse
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from statesvc.cli.command_error import CommandError

URL: Final = "STATESVC_URL"
KEY: Final = "STATESVC_API_KEY"
PROFILE: Final = "STATESVC_PROFILE"
PROFILES: Final = "STATESVC_PROFILES"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    url: str
    key: str = field(repr=False)


def service_of(options: argparse.Namespace) -> Service | None:
    """Return the service that was named to be called; None: none was.

    The flags win over the environment, an address over a profile.
    """
    url, profile = options.service_url, options.profile
    key = None if options.key_file is None else _key_in(options.key_file)
    if url is None and profile is None:
        url, profile = os.environ.get(URL) or None, os.environ.get(PROFILE) or None
    if url is not None:
        return Service(url=_checked(url), key=key or os.environ.get(KEY) or _lacks_key(url))
    if profile is None:
        if options.key_file is not None:
            raise CommandError(
                f"--key-file needs the service that the key is for: --url, --profile or {URL}",
                exit_code=2,
            )
        return None
    described = _profile(profile)
    url = _checked(str(described.get("url", "")))
    kept = described.get("key") or (
        _key_in(described["key_file"]) if "key_file" in described else None
    )
    return Service(url=url, key=key or kept or _lacks_key(url))


def _lacks_key(url: str) -> str:
    raise CommandError(
        f"{url} takes a key: --key-file FILE, or {KEY}, or a profile with `key_file`", exit_code=2
    )


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if (
        parts.scheme not in {"http", "https"}
        or not parts.hostname
        or parts.username
        or parts.query
        or parts.fragment
    ):
        raise CommandError(
            f"{url or 'an empty text'} is no address of a service: write https://HOST or"
            " http://HOST:PORT",
            exit_code=2,
        )
    return url.rstrip("/")


def _key_in(file: str) -> str:
    path = Path(file).expanduser()
    try:
        key = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CommandError(f"the key file {path} cannot be read: {reason}", exit_code=2) from None
    if not key.isprintable() or not key.isascii() or not key:
        raise CommandError(
            f"the key file {path} holds no key: one line, as `statesvc keys create` printed it",
            exit_code=2,
        )
    return key


def _profile(name: str) -> Mapping[str, Any]:
    if "," in name:
        raise CommandError(
            "several profiles in one command were removed: run it once for each", exit_code=2
        )
    file = os.environ.get(PROFILES)
    path = (
        Path(file).expanduser()
        if file
        else Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
        / "statesvc/profiles.toml"
    )
    try:
        profiles = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise CommandError(
            f"the profile {name} is not there: {path}: {error.strerror}", exit_code=2
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"the profiles in {path} cannot be read: {error}", exit_code=2) from None
    found = profiles.get(name)
    if not isinstance(found, dict):
        raise CommandError(
            f"{path} has no profile {name}; it has: {', '.join(sorted(profiles)) or 'none'}",
            exit_code=2,
        )
    return found
