"""Moves messages from another broker, and back: an optional part (`statesvc[shovel]`).

```
source --take--> batch --map--> carrier, body, ETA --+--> inbox (or dead letters)   durable --+
 RabbitMQ, Redis, file                               +--> backup, as it came        durable --+
                                                                 acknowledged at the source <-+
```
A message is acknowledged only after both are durable, and a task that is transferred again
after a crash is known by its id and arguments: so none is lost, and none has an effect twice.
`amqp_source`, `redis_source` and `sources` take; `celery_task` and `task_mapping` read, without
I/O; `transfer` is the loop; `way_back` returns unprocessed messages, from the backup.
"""

from typing import Final

from statesvc.seams import AddOn, ListedCommand

ADDON: Final = AddOn(
    commands={
        "Admin": {
            "shovel": ListedCommand(
                "statesvc.addons.shovel.shovel_command",
                "move messages from another broker, and back",
            )
        }
    },
)
