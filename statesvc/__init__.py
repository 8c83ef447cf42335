"""The service around the event log: ingress, worker, notifier, API, and the commands that run them.

A reader who is new here takes the way of a webhook: `ingress` (taken, stored, acknowledged), `queue` (claimed), `worker` and `reading`
(normalized by a carrier of `events.carriers`), `append` (THE transaction: `log`, `shipments`), `sealer` (the signed tree), `notifier`
and `delivery` (sent to subscribers). Then what stands around it: `api` and `cli`, `repair` and `privacy`, `health`, and last
`roles`, which put the parts together. `seams` is where `addons` join, which nothing of this needs. ARCHITECTURE.md has the map.
"""

__version__ = "0.1.0"
