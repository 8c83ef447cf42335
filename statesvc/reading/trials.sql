-- name: add_batch
-- Add one batch of trials of one candidate.
INSERT INTO statesvc.rollout_batch (recorded_at, carrier_id, candidate, messages, errors, differing)
VALUES (statesvc.clock(), %(carrier_id)s, %(candidate)s, %(messages)s, %(errors)s, %(differing)s)
RETURNING rollout_batch_id;

-- name: add_counts
-- Add to this worker's totals; sorted, so that two batches of one worker wait for each other instead of deadlocking.
INSERT INTO statesvc.rollout_count AS c (carrier_id, candidate, measure, worker, count)
SELECT %(carrier_id)s, %(candidate)s, u.measure, %(worker)s, u.count
FROM unnest(%(measures)s::text[], %(counts)s::bigint[]) AS u(measure, count) ORDER BY u.measure
ON CONFLICT (carrier_id, candidate, measure, worker) DO UPDATE SET count = c.count + excluded.count;

-- name: add_diffs
-- Add the differences of one batch.
INSERT INTO statesvc.rollout_diff
    (recorded_at, message_id, carrier_id, stable, candidate, event_id, field, stable_value, candidate_value)
SELECT statesvc.clock(), u.message_id, %(carrier_id)s, %(stable)s, %(candidate)s, u.event_id, u.field, u.stable_value, u.candidate_value
FROM unnest(%(message_ids)s::uuid[], %(event_ids)s::text[], %(fields)s::text[], %(stable_values)s::text[], %(candidate_values)s::text[])
    AS u(message_id, event_id, field, stable_value, candidate_value);

-- name: prune_diffs
-- Keep the newest rows of a carrier.
DELETE FROM statesvc.rollout_diff d
WHERE d.carrier_id = %(carrier_id)s AND d.diff_id <= (
    SELECT k.diff_id FROM statesvc.rollout_diff k WHERE k.carrier_id = %(carrier_id)s ORDER BY k.diff_id DESC OFFSET %(keep)s LIMIT 1);

-- name: prune_batches
-- Keep the newest rows of a carrier.
DELETE FROM statesvc.rollout_batch t
WHERE t.carrier_id = %(carrier_id)s AND t.rollout_batch_id <= (
    SELECT k.rollout_batch_id FROM statesvc.rollout_batch k WHERE k.carrier_id = %(carrier_id)s ORDER BY k.rollout_batch_id DESC OFFSET %(keep)s LIMIT 1);

-- name: guard
-- Set the share to 0 where the newest trials pass a bound of the guard; return what it saw. The shares are of `guard_messages` at least, so
-- that one early failure is not 100 %%.
WITH rollout AS (
    SELECT r.* FROM statesvc.rollout r
    WHERE r.carrier_id = %(carrier_id)s AND r.candidate = %(candidate)s AND r.percent > 0 AND r.guard_messages IS NOT NULL
), newest AS (
    SELECT t.messages, t.errors, t.differing, sum(t.messages) OVER (ORDER BY t.rollout_batch_id DESC) - t.messages AS newer
    FROM statesvc.rollout_batch t JOIN rollout d ON t.carrier_id = d.carrier_id AND t.candidate = d.candidate AND t.recorded_at >= d.turned_at
    ORDER BY t.rollout_batch_id DESC LIMIT (SELECT d.guard_messages FROM rollout d)
), seen AS (
    SELECT greatest(sum(n.messages), d.guard_messages) AS messages, sum(n.errors) AS errors, sum(n.differing) AS differing
    FROM newest n CROSS JOIN rollout d WHERE n.newer < d.guard_messages GROUP BY d.guard_messages
)
UPDATE statesvc.rollout r
SET percent = 0, turned_at = statesvc.clock(), changed_at = statesvc.clock(), changed_by = 'guard',
    why = format('%%s of the last %%s messages failed, %%s were read differently', s.errors, s.messages, s.differing)
FROM seen s
WHERE r.carrier_id = %(carrier_id)s AND r.candidate = %(candidate)s AND r.percent > 0
    AND (s.errors * 100.0 > s.messages * r.guard_errors_percent OR s.differing * 100.0 > s.messages * r.guard_differences_percent)
RETURNING s.messages::bigint, s.errors::bigint, s.differing::bigint, r.turned_at;

-- name: totals
-- Return what all workers counted of a candidate.
SELECT c.measure, sum(c.count)::bigint FROM statesvc.rollout_count c
WHERE c.carrier_id = %(carrier_id)s AND c.candidate = %(candidate)s GROUP BY c.measure ORDER BY c.measure;

-- name: forget_counts
-- Begin the totals again, because a candidate was named.
DELETE FROM statesvc.rollout_count c WHERE c.carrier_id = %(carrier_id)s;

-- name: forget_pending
-- Forget the trials of a candidate that another took the place of.
DELETE FROM statesvc.trial t WHERE t.carrier_id = %(carrier_id)s;

-- name: list_diffs
-- Return a page of differences, the newest first.
SELECT d.diff_id, d.recorded_at, d.message_id, d.stable, d.candidate, d.event_id, d.field, d.stable_value, d.candidate_value
FROM statesvc.rollout_diff d
WHERE d.carrier_id = %(carrier_id)s AND d.diff_id < %(before)s::bigint AND (%(candidate)s::text IS NULL OR d.candidate = %(candidate)s)
ORDER BY d.diff_id DESC LIMIT %(limit)s;

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
