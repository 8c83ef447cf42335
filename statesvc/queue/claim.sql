-- name: claim
-- Lease the next messages to a worker, fairly over the carriers; with the newest revision of the code mappings. Its commit does not wait
-- for the disk: a crash of the server undoes a lease together with the work under it, and its token then holds nothing.
SELECT message_id, carrier_id, token, attempts, retries, received_at, stage, candidate, percent, shadow, sealed_key, commitment, sealed,
    normalized_by, normalized, postponed, rescued_from, headers ->> 'traceparent',
    (SELECT coalesce(max(m.revision), 0) FROM statesvc.code_mapping m), stable, in_share, fallback_for,
    headers ->> 'statesvc-notify' IS DISTINCT FROM 'false', buried_for, complete
FROM set_config('synchronous_commit', 'off', true), statesvc.claim(%(worker)s, %(limit)s, %(lease)s, 'any', %(bytes_max)s, %(sweep)s, %(rescue_first)s, true, true);

-- name: extend
-- Move the end of a lease; return how many messages the token still holds.
SELECT statesvc.extend(%(token)s, %(lease)s);

-- name: lock_leased
-- Lock those of the messages that the token still holds, and set how the rest of the transaction waits and plans.
SELECT statesvc.hold_leased(%(token)s, %(message_ids)b::uuid[], %(lock_milliseconds)s);

-- name: settle
-- End messages with their verdict. Their rows are locked by `lock_leased`.
WITH gone AS (
    DELETE FROM statesvc.inbox WHERE message_id = ANY (%(message_ids)b::uuid[])
    RETURNING message_id, received_at, attempts, carrier_id
)
INSERT INTO statesvc.message
    (message_id, received_at, settled_at, attempts, events, carrier_id, outcome, normalizer, worker, shipments, sealed_key)
SELECT g.message_id, g.received_at, statesvc.clock(), g.attempts, u.events, g.carrier_id, CASE WHEN u.empty THEN 'empty' ELSE 'applied' END,
    u.normalizer, %(worker)s, CASE WHEN u.shipments = '' THEN '{}' ELSE string_to_array(u.shipments, ',')::uuid[] END, u.sealed_key
FROM unnest(%(message_ids)b::uuid[], %(events)b::int[], %(empties)b::bool[], %(normalizers)b::text[], %(shipments)b::text[],
    %(sealed_keys)b::bytea[]) AS u(message_id, events, empty, normalizer, shipments, sealed_key)
JOIN gone g ON g.message_id = u.message_id;

-- name: bury
-- Move messages to the dead letters.
SELECT statesvc.bury(%(token)s, %(message_ids)b::uuid[], %(causes)b::text[], %(details)b::text[], %(normalizers)b::text[]);

-- name: forget_erased
-- Take the keys of dead letters whose message names an erased shipment: as an erasure does with those that were there before it.
UPDATE statesvc.dead_letter d
SET sealed_key = NULL, resolution = 'discarded', resolved_at = statesvc.clock(), resolved_by = 'erasure',
    why = 'its body names an erased shipment'
FROM unnest(%(message_ids)s::uuid[], %(shipment_ids)s::uuid[]) AS u(message_id, shipment_id)
JOIN statesvc.stream s ON s.shipment_id = u.shipment_id AND s.sealed_key IS NULL
WHERE d.message_id = u.message_id AND d.kind = 'message' AND d.sealed_key IS NOT NULL AND d.resolved_at IS NULL;

-- name: retry
-- Give messages back after a transient failure.
SELECT statesvc.retry(%(token)s, %(message_ids)b::uuid[], %(delays)b::interval[], %(errors)b::text[], %(normalizers)b::text[]);

-- name: postpone
-- Give messages back uncharged, for a short while.
SELECT statesvc.postpone(%(token)s, %(message_ids)b::uuid[]);

-- name: release
-- Give back everything that a token holds, uncharged.
SELECT statesvc.release(%(token)s);

-- name: next_due
-- Return the seconds until it is worth claiming again (NULL: none waits, or it is not asked), and whether a carrier's bound keeps back what
-- is ready.
SELECT CASE WHEN %(ahead)s THEN extract(epoch FROM statesvc.next_due() - statesvc.clock())::float8 END, statesvc.throttled();
