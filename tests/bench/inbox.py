"""Messages that wait before the clock starts, held back by the kill switch until it does."""

from collections.abc import Awaitable, Callable, Iterable
from itertools import batched
from typing import Any, Final

from psycopg import AsyncConnection

from events.keyring import Keyring
from statesvc.ingress.put import put
from statesvc.ingress.sealed_message import seal_message
from statesvc.keys import load_keyring, parse_master_keys
from tests.acceptance.processes import MASTER_KEY
from tests.bench.server import Place
from tests.bench.traffic import Push

