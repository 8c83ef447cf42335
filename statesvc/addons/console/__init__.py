"""The operators' pages: server-rendered, behind a session of an API key.

Pages call the API in this process, with the session's key.
"""

from typing import Final

from statesvc.seams import AddOn, ListedCommand

ADDON: Final = AddOn(
    commands={
        "Look": {
            "open": ListedCommand(
                "statesvc.addons.console.open_console",
                "open the console in a browser",
                calls_api=True,
            )
        }
    },
    paths=("/console", "/console/{rest:.*}", "/portal", "/portal/{rest:.*}"),
    pages="statesvc.addons.console.routes:served_pages",
    warm_up="statesvc.addons.console.pages:Templates",
)
