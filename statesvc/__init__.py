"""The service around the event log: ingress, worker, notifier, API, and the commands that run them.

Reading order, along the way of a webhook: `ingress` (taken, stored, acknowledged), `queue`
(claimed), `worker` and `reading` (normalized by a carrier of `events.carriers`), `append` (the
transaction: `log`, `shipments`), `sealer` (the signed tree), `notifier` and `delivery` (sent to
subscribers). Then the rest: `api` and `cli`, `repair` and `privacy`, `health`, and last `roles`,
which put the parts together. `addons` join at `seams`; the core needs none of them. ARCHITECTURE.md
has the map.
"""

__version__ = "0.1.0"
