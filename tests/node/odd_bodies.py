"""Bodies that two implementations might read differently."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any, Final

from tests.acceptance.stories import Message, messages

ODD: Final[tuple[Any, ...]] = (
    *(
        None,
        "",
        " ",
        0,
        7,
        -1,
        1.5,
        True,
        [],
        {},
        [1],
        {"a": 1},
        "null",
        "string",
        "I",
        "DS",
        "D",
        "FS",
        "ZZ",
        "M",
        "U",
        "48",
        "ß",
        "İ",
        "ﬃ",
    ),
    *(
        "20260230",
        "19700101",
        "00010101",
        "99991231",
        "240000",
        "235960",
        "080000",
        "-05:00",
        "+5",
        "UTC+9",
        "Z",
        "+15",
        "2026-03-01",
        "us",
    ),
    *(
        "USA",
        "usa",
        "Germany",
        "DEUTSCHLAND",
        "\u2003x\u2003",
        "x\ufeff",
        "\x1fx",
        "a\x00b",
        "\ud83d",
        "😀",
        "x" * 300,
        "1" * 40,
        10**17,
        "é",
    ),
    *(
        "Out For Delivery.",
        "OUT FOR DELIVERY TODAY",
        " . J. Doe ",
        "Signature on file",
        "2026-05-02T24:00:00Z",
        "2026-05-02t10:00:00.1234567Z",
    ),
    *(
        "2026-05-02T10:00:00.120+05:30",
        "unknown",
        "delivered",
        "info",
        "weather",
        "pair",
        "day",
        "canonical",
        "ups",
        "1e5",
        "-",
        "toString",
    ),
)


def mutations(count: int, seed: int) -> Iterator[Message]:
    """Yield stories in which one or two values are others, some of them no JSON any more.

    The same seed gives the same bytes.
    """
    chance = random.Random(seed)
    for message in messages(count, seed):
        value = json.loads(message.body)
        for _ in range(chance.randrange(1, 3)):
            _change(value, chance)
        printed = json.dumps(
            value, ensure_ascii=chance.random() < 0.5, indent=chance.choice((None, 1))
        )
        if chance.random() < 0.1:
            printed = printed.replace('"', '"code": "OT", "', 1)
        if chance.random() < 0.1:
            printed = f"[{printed}]"
        body = printed.encode("utf-8", "surrogatepass")
        yield Message(
            message.carrier_id, body if chance.random() < 0.95 else body[: len(body) // 2]
        )


def _change(value: dict[str, Any], chance: random.Random) -> None:
    name = chance.choice(
        [
            *value,
            *(
                "reason",
                "kind",
                "location",
                "gmtOffset",
                "receivedBy",
                "corrects",
                "signed_by",
                "piece",
            ),
        ]
    )
    inner = value.get(name)
    if isinstance(inner, dict) and inner and chance.random() < 0.8:
        _change(inner, chance)
    elif chance.random() < 0.2:
        value.pop(name, None)
    else:
        value[name] = copy.deepcopy(chance.choice(ODD))
