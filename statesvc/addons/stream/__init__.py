"""`GET /v1/stream`: transitions as Server-Sent Events, from the sealed log.

```
checkpoint --wake-up--> Follower, with its next index --> Channel --> client
                            Pages of the log, each read and encoded once for all
```
The log is the buffer: the state of a client is its next index, so no transition is lost or repeated
however often it comes back, and a slow reader costs other clients no time.
"""

from typing import Final

from statesvc.seams import AddOn

ADDON: Final = AddOn(
    paths=("/v1/stream", "/v1/stream/tickets"),
    operations="statesvc.addons.stream.tickets:OPERATIONS",
    lasting_calls="statesvc.addons.stream.routes:served_stream",
)
