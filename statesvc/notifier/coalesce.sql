-- name: overfull
-- Return the subscriptions for which too much waits: more than `count_max`, or something older than `age_seconds`. Counts no further than
-- it must.
SELECT s.subscription_id, w.waiting > %(count_max)s::int AS too_many, t.at - make_interval(secs => %(age_seconds)s::float8) AS too_old
FROM statesvc.subscription s
CROSS JOIN (SELECT statesvc.clock() AS at) t
CROSS JOIN LATERAL (
    SELECT count(*) AS waiting, min(q.created_at) AS oldest FROM (
        SELECT o.created_at FROM statesvc.outbox o WHERE o.subscription_id = s.subscription_id LIMIT %(count_max)s::int + 1
    ) q
) w
WHERE s.coalesces AND s.deleted_at IS NULL
    AND (w.waiting > %(count_max)s::int OR w.oldest < t.at - make_interval(secs => %(age_seconds)s::float8));

-- name: collapsible
-- Return a window of what waits for a subscription: its shipments, and of which more than one notification waits (and the oldest is too
-- old, unless there are too many of all). Observations stand for themselves.
SELECT w.shipment_id, count(*) > 1 AND (%(too_many)s::boolean OR min(w.created_at) < %(too_old)s::timestamptz) AS collapses
FROM (
    SELECT o.shipment_id, o.created_at FROM statesvc.outbox o
    WHERE o.subscription_id = %(subscription_id)s AND o.shipment_id > %(after)s::uuid AND o.sequence > 0
    ORDER BY o.shipment_id, o.sequence LIMIT %(window)s
) w
GROUP BY w.shipment_id ORDER BY w.shipment_id;

-- name: lock_waiting
-- Lock what waits of these shipments without a lease, and return it.
SELECT o.shipment_id, o.sequence FROM statesvc.outbox o
WHERE o.subscription_id = %(subscription_id)s AND o.shipment_id = ANY (%(shipment_ids)b::uuid[])
    AND (o.token IS NULL OR o.available_at <= statesvc.clock()) AND o.sequence > 0
ORDER BY o.shipment_id, o.sequence FOR UPDATE OF o SKIP LOCKED;

-- name: collapse
-- Have the last of each shipment stand for those before it, which leave the outbox: one that was never tried, before a replay neither, and
-- stands for none yet. It says what those stood for themselves, covers of that what has not ended, and need not wait for the retry of one
-- of them. Return how many were left out. What is given was locked.
WITH waiting AS MATERIALIZED (
    SELECT o.ctid AS row_id, o.shipment_id, o.sequence, o.earlier_attempts + o.attempts AS attempts, g.skipped, g.from_sequence,
        CASE WHEN NOT EXISTS (
            SELECT FROM statesvc.attempt a
            WHERE a.shipment_id = g.shipment_id AND a.sequence = g.sequence AND a.subscription_id = g.subscription_id
                AND a.recorded_at > g.recorded_at AND a.outcome <> 'late') THEN g.covers END AS covers,
        o.sequence = max(o.sequence) OVER (PARTITION BY o.shipment_id) AS is_last
    FROM unnest(%(shipment_ids)b::uuid[], %(sequences)b::int[]) AS u(shipment_id, sequence)
    JOIN statesvc.outbox o
        ON o.shipment_id = u.shipment_id AND o.sequence = u.sequence AND o.subscription_id = %(subscription_id)s
    LEFT JOIN statesvc.notification_gap g
        ON g.shipment_id = o.shipment_id AND g.sequence = o.sequence AND g.subscription_id = o.subscription_id
), skipped AS MATERIALIZED (
    SELECT w.*, l.sequence AS stands_for_it, l.row_id AS its_row_id
    FROM waiting w JOIN waiting l ON l.shipment_id = w.shipment_id AND l.is_last AND NOT w.is_last
    WHERE l.attempts = 0 AND l.skipped IS NULL
), taken_out AS (
    DELETE FROM statesvc.outbox o WHERE o.ctid = ANY (ARRAY(SELECT k.row_id FROM skipped k))
), brought_forward AS (
    UPDATE statesvc.outbox o SET available_at = t.at FROM (SELECT statesvc.clock() AS at) t
    WHERE o.ctid = ANY (ARRAY(SELECT k.its_row_id FROM skipped k)) AND o.available_at > t.at
), written AS (
    INSERT INTO statesvc.notification_gap (shipment_id, sequence, subscription_id, recorded_at, skipped, from_sequence, to_sequence, covers)
    SELECT k.shipment_id, k.stands_for_it, %(subscription_id)s, statesvc.clock(), count(*) + coalesce(sum(k.skipped), 0),
        min(coalesce(k.from_sequence, k.sequence)), max(k.sequence), ARRAY(
            SELECT DISTINCT c.sequence FROM skipped s CROSS JOIN LATERAL unnest(array_append(s.covers, s.sequence)) AS c(sequence)
            WHERE s.shipment_id = k.shipment_id ORDER BY c.sequence)
    FROM skipped k GROUP BY k.shipment_id, k.stands_for_it
)
SELECT count(*) FROM skipped;
