"""`statesvc open`: the console in a browser, and its address."""

import argparse
import os
import webbrowser
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_line
from statesvc.cli.service_profile import URL, named_service

_SECONDS: Final = 3.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--print", action="store_true", help="print the address, and open nothing")


def run(options: argparse.Namespace) -> int:
    """Print the address and open it. 1: no server answers there."""
    address = f"{(_named_url(options) or _own_url()).rstrip('/')}/console"
    write_line(address)
    if not _answers(address):
        raise CommandError(
            "nothing answers there: is it running, and there? --url names another address"
        )
    if not options.print:
        webbrowser.open(address)
    return 0


def _named_url(options: argparse.Namespace) -> str | None:
    """Return the named URL; an address needs no key here: the console asks for it."""
    url: str | None = options.service_url or (None if options.profile else os.environ.get(URL))
    if url:
        return url
    service = named_service(
        url=None, key_file=options.key_file, profile=options.profile, environment=os.environ
    )
    return None if service is None else service.url


def _own_url() -> str:
    # here, because a command for a service elsewhere needs no settings, nor what they load
    from statesvc.settings.http_settings import in_url, reached_at  # noqa: PLC0415
    from statesvc.settings.service_settings import load_settings  # noqa: PLC0415

    http = load_settings().http
    return f"http://{in_url(reached_at(http.host))}:{http.port}"


def _answers(address: str) -> bool:
    try:
        # http and https: the operator named it
        with urlopen(address, timeout=_SECONDS):  # noqa: S310
            return True
    except HTTPError:
        return True
    except (URLError, OSError):
        return False
