"""The API's calls as tools for agents (Model Context Protocol). The SDK is imported only by its
command.
"""

from typing import Final

from statesvc.seams import AddOn, ListedCommand

ADDON: Final = AddOn(
    commands={
        "Admin": {
            "mcp": ListedCommand(
                "statesvc.addons.mcp.mcp_command",
                "serve the API's calls as tools to an agent, over a key",
                calls_api=True,
            )
        }
    },
)
