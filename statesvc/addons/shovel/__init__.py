"""Brings messages over from another broker, and back: an optional part (`statesvc[shovel]`) that nothing else imports.

```
source --take--> batch --map--> carrier, body, ETA --+--> inbox (or dead letters)   durable --+--> acknowledged at the source
 RabbitMQ, Redis, file                               +--> backup, as it came        durable --+
```
Nothing is acknowledged before both are durable, and what is transferred again after a crash is recognised by the id of its task: so
nothing is lost, and nothing has an effect twice. `amqp_source`, `redis_source` and `sources` take; `celery_task` and `task_mapping`
read, without I/O; `transfer` is the loop; `way_back` returns what was not processed, from the backup.
"""

from typing import Final

from statesvc.seams import AddOn, ListedCommand

ADDON: Final = AddOn(
    commands={
        "Admin": {
            "shovel": ListedCommand(
                "statesvc.addons.shovel.shovel_command",
                "bring messages over from another broker, and back",
            )
        }
    },
)
