"""How the document of the API begins, and the order of its parts."""

from collections.abc import Mapping
from typing import Final

INTRODUCTION: Final = """
Carriers push, statesvc stores and reads what they push, and answers where a shipment is, how it got
there and since when that was known. People look at the same in the [console](/console).

# First call
A shipment by its carrier and number, in whatever spelling:

```sh
export API=https://statesvc.example KEY=ss_...
curl "$API/v1/shipments/ups/1ZTEST000300000011" \\
  -H "Authorization: Bearer $KEY"
```

Then: its history, a list of many, and a subscription that tells you of every change. Each call has
samples for curl, Python (httpx) and Node; they take `API` and `KEY` from the environment.

# Authentication
`Authorization: Bearer` and an API key. Make one with
`statesvc keys create --name shop --scopes read,subscriptions`; each call names the scope that it
takes, and `admin` is all of them. Carriers prove who they are in their own way.

# Conventions
Answers are JSON, times are RFC 3339 with an offset. Later versions add members, and words to
vocabularies: skip what you do not know. Lists have `next_cursor`, which goes into `cursor`. What
goes wrong is `application/problem+json` (RFC 9457): programs read `code`, and the table on top of
this page says what to do about each. A 429 or 503 says in `Retry-After` how many seconds to wait.
""".strip()

# Purpose of each tag's calls, in the order of the page.
TAGS: Final[Mapping[str, str]] = {
    "shipments": "Where they are, how they got there, and evidence of it.",
    "subscriptions": "Who is told of changes, and what became of it.",
    "log": "Every change in order, as pages or a stream, and proof that none was altered.",
    # "webhooks" would collide with OpenAPI's object of that name in generated clients
    "pushes": "Calls that carriers make.",
    "notifications": "Calls that subscribers receive.",
    "events": "Statements of your own.",
    "messages": "What a carrier sent, byte for byte.",
    "reports": "How carriers kept their promises.",
    "expectations": "What is observed when nothing happens.",
    "legal holds": "What no erasure may touch.",
    "status": "What is wrong and what waits, on one screen.",
    "dead letters": "What gave up, by cause, and how it is done again.",
    "codes": "What carriers' codes mean, taught without a release.",
    "rollouts": "Which version of a normalizer reads what.",
    "queue": "What waits, who works on it, how much each may.",
    "notices": "What a human should see once.",
    "keys": "Who may call.",
    "actions": "What operators did, and why.",
    "health": "For load balancers.",
}
