-- name: write_trials
-- Have a foreign candidate try these messages, which this transaction settles after this; with the hand-over that took effect, if any.
INSERT INTO statesvc.trial (message_id, received_at, available_at, ends_at, body_bytes, carrier_id, candidate, stable, stable_sealed,
    shipments, sealed_key)
SELECT q.message_id, q.received_at, statesvc.clock(), statesvc.clock() + interval '1 hour', q.body_bytes, q.carrier_id, u.candidate,
    n.normalizer, n.sealed, string_to_array(u.shipments, ',')::uuid[], q.sealed_key
FROM unnest(%(message_ids)s::uuid[], %(candidates)s::text[], %(shipments)s::text[]) AS u(message_id, candidate, shipments)
JOIN statesvc.inbox q ON q.message_id = u.message_id
LEFT JOIN statesvc.normalized n ON n.message_id = q.message_id;

-- name: drop_trials
-- Drop the oldest trials of a carrier beyond `keep`, and those that are over; count them. Never waits for one that is being compared.
WITH dropped AS (
    DELETE FROM statesvc.trial WHERE trial_id = ANY (ARRAY(
        SELECT t.trial_id FROM statesvc.trial t
        WHERE t.carrier_id = %(carrier_id)s AND (t.ends_at <= statesvc.clock() OR (t.attempts >= 5 AND t.available_at <= statesvc.clock())
            OR t.trial_id <= (SELECT k.trial_id FROM statesvc.trial k WHERE k.carrier_id = %(carrier_id)s
                ORDER BY k.trial_id DESC OFFSET %(keep)s LIMIT 1))
        FOR UPDATE SKIP LOCKED))
    RETURNING candidate
)
INSERT INTO statesvc.rollout_count AS c (carrier_id, candidate, measure, worker, count)
SELECT %(carrier_id)s, d.candidate, 'dropped', %(worker)s, count(*) FROM dropped d GROUP BY d.candidate ORDER BY d.candidate
ON CONFLICT (carrier_id, candidate, measure, worker) DO UPDATE SET count = c.count + excluded.count;

-- name: lock_handed_over
-- Lock the trials whose candidate gave its verdict, with their bodies, for a comparison in this transaction.
WITH chosen AS MATERIALIZED (
    SELECT t.* FROM statesvc.trial t WHERE t.verdict IS NOT NULL ORDER BY t.trial_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
SELECT t.trial_id, t.message_id, t.carrier_id, t.received_at, t.candidate, t.sealed_key, t.stable, t.stable_sealed, t.sealed,
    coalesce(b.commitment, k.commitment), coalesce(b.sealed, k.sealed)
FROM chosen t
LEFT JOIN LATERAL (
    SELECT b.commitment, b.sealed FROM statesvc.body b WHERE b.message_id = t.message_id AND b.received_at = t.received_at LIMIT 1) b ON true
LEFT JOIN LATERAL (
    SELECT k.commitment, k.sealed FROM statesvc.body_retained k WHERE k.message_id = t.message_id LIMIT 1) k ON true
ORDER BY t.trial_id;

-- name: forget_trials
-- Forget trials that were compared.
DELETE FROM statesvc.trial WHERE trial_id = ANY (%(trial_ids)s::bigint[]);

-- name: any_trial
-- Return whether any trial waits, for its candidate or for its comparison.
SELECT EXISTS (SELECT FROM statesvc.trial t WHERE t.ends_at > statesvc.clock());

-- name: erase_trials
-- Forget the trials on messages that name an erased shipment, and all that was read of them.
DELETE FROM statesvc.trial t WHERE t.shipments && %(shipment_ids)s::uuid[];
