"""A waker with a connection of its own."""

from typing import Any

from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.waker import Waker


class LoneWaker(Waker):
    def __init__(self, dsn: str, **options: Any) -> None:
        self._listener = Listener(dsn, [])
        super().__init__(self._listener, **options)

    async def start(self) -> None:
        await self._listener.start()
        await super().start()

    async def stop(self) -> None:
        await super().stop()
        await self._listener.stop()
