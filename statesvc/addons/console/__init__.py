"""The operators' pages: server-rendered, behind a session of an API key.

Pages call the API in this process, with the session's key.
"""

from typing import Final

from statesvc.seams import AddOn

ADDON: Final = AddOn(
    paths=("/console", "/console/{rest:.*}", "/portal", "/portal/{rest:.*}"),
    pages="statesvc.addons.console.routes:served_pages",
    warm_up="statesvc.addons.console.pages:Templates",
)
