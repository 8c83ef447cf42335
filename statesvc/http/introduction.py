"""How the document of the API begins, and the order of its parts."""

from collections.abc import Mapping
from typing import Final

INTRODUCTION: Final = """
Carriers push messages; statesvc stores and reads them, and answers with a shipment's state, its
history, and the time at which each fact was known. The [console](/console) shows the same.

# First call
A shipment by its carrier and number, in whatever spelling:

```sh
export API=https://statesvc.example KEY=ss_...
curl "$API/v1/shipments/ups/1ZTEST000300000011" \\
  -H "Authorization: Bearer $KEY"
```

Then: its history, a list of many, and a subscription that tells you of every change. There are
clients for Python and TypeScript.

# Authentication
`Authorization: Bearer` and an API key. Make one with
`statesvc keys create --name shop --scopes read,subscriptions`; each call names the scope that it
takes, and `admin` is all of them. Carriers prove who they are in their own way.

# Conventions
Answers are JSON, times are RFC 3339 with an offset. Later versions add members, and words to
vocabularies: ignore unknown ones. Lists have `next_cursor`, which goes into `cursor`. An error is
`application/problem+json` (RFC 9457): programs read `code`, and the table on top of this page has
the remedy for each. A 429 or 503 says in `Retry-After` how many seconds to wait.
""".strip()

# Purpose of each tag's calls, in the order of the page.
TAGS: Final[Mapping[str, str]] = {
    "shipments": "Current state, history and evidence of shipments.",
    "subscriptions": "Receivers of changes, and their deliveries.",
    "log": "Every change in order, as pages or a stream, and proof that none was altered.",
    # "webhooks" would collide with OpenAPI's object of that name in generated clients
    "pushes": "Calls that carriers make.",
    "notifications": "Calls that subscribers receive.",
    "events": "Statements of your own.",
    "messages": "Carriers' messages, byte for byte.",
    "reports": "Kept and broken promises of carriers.",
    "expectations": "Deadlines after which silence is an observation.",
    "legal holds": "Numbers that no erasure may touch.",
    "status": "Findings and backlogs on one screen.",
    "dead letters": "Failed messages and notifications by cause, and their replay.",
    "codes": "Meanings of carriers' codes, mapped without a release.",
    "rollouts": "Shares of normalizer versions.",
    "queue": "Backlogs, processes and quotas.",
    "notices": "Notices for people, shown until seen.",
    "keys": "API keys.",
    "actions": "Operators' actions with their reasons.",
    "health": "For load balancers.",
}
