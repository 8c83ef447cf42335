-- name: begin
-- Take the lock that lets one process reconcile; false: another does.
SELECT pg_try_advisory_xact_lock(hashtextextended('statesvc.reconciler', 0));

-- name: minutes
-- Return the minutes to count: acknowledged in, over for `settle_seconds`, and never counted; and those to be looked at again. The oldest
-- first. A minute of which a spool may still hold messages is left for later, for a day at most: then a spool that was lost shows.
WITH now AS MATERIALIZED (
    SELECT statesvc.clock() AS at
), heard AS (
    SELECT DISTINCT extract(epoch FROM t.minute)::bigint AS begins
    FROM now, statesvc.ack_count t
    WHERE t.minute > now.at - interval '7 days' AND t.minute < now.at - make_interval(secs => %(settle_seconds)s::float8 + 60)
        AND (t.minute < now.at - interval '23 hours'
            OR NOT EXISTS (SELECT FROM statesvc.spool s WHERE s.clear_until < t.minute + interval '1 minute'))
)
SELECT begins FROM (
    SELECT h.begins FROM heard h
    WHERE NOT EXISTS (SELECT FROM statesvc.reconciled r WHERE r.promise = 'settled' AND r.begins = h.begins)
    UNION ALL
    SELECT r.begins FROM now, statesvc.reconciled r WHERE r.promise = 'settled' AND r.check_at <= now.at
) m
ORDER BY begins LIMIT %(limit)s;

-- name: count_minute
-- Count of the messages whose ids are of a minute how many were acknowledged, how many are stored, how many of those wait, and how many of
-- them are neither waiting, settled nor a dead letter. Bodies leave after their hot days, so only of a young minute it says how many are
-- stored. Ids are of the clock of the machine that took the message, `received_at` of the database's; `difference` is how much these may
-- differ by. An id from a spool that was discarded for another is stored as that.
WITH stored AS MATERIALIZED (
    SELECT b.message_id, b.received_at FROM statesvc.body b
    WHERE b.message_id >= %(from_id)s::uuid AND b.message_id < %(to_id)s::uuid
        AND b.received_at BETWEEN %(at)s::timestamptz - %(difference)s::interval AND %(at)s::timestamptz + %(difference)s::interval
), waiting AS (
    SELECT count(*) AS messages FROM statesvc.inbox q WHERE q.message_id >= %(from_id)s::uuid AND q.message_id < %(to_id)s::uuid
), lost AS (
    SELECT count(*) AS messages FROM stored k
    WHERE NOT EXISTS (SELECT FROM statesvc.inbox q WHERE q.message_id = k.message_id)
        AND NOT EXISTS (
            SELECT FROM statesvc.message m
            WHERE m.message_id = k.message_id AND m.received_at BETWEEN %(at)s::timestamptz - %(difference)s::interval AND %(at)s::timestamptz + %(difference)s::interval)
        AND NOT EXISTS (SELECT FROM statesvc.dead_letter d WHERE d.message_id = k.message_id AND d.kind = 'message')
)
SELECT (SELECT coalesce(sum(t.accepted), 0)::bigint FROM statesvc.lane l
        JOIN statesvc.ack_count t ON t.carrier_id = l.carrier_id AND t.minute = %(at)s::timestamptz),
    (SELECT count(*) FROM stored) + (SELECT count(*) FROM statesvc.message_alias a
        WHERE a.message_id >= %(from_id)s::uuid AND a.message_id < %(to_id)s::uuid), (SELECT messages FROM waiting), (SELECT messages FROM lost),
    %(at)s::timestamptz > statesvc.clock() - interval '1 day';

-- name: next_span
-- Return the next part of the sealed log to count, of about `entries` entries; NULLs: there is none.
SELECT min(b.first_index), max(b.first_index + b.entries)
FROM (
    SELECT b.first_index, b.entries
    FROM (SELECT coalesce(max(r.ends), 0) AS at_index FROM statesvc.reconciled r WHERE r.promise = 'notified') begun
    CROSS JOIN LATERAL (
        SELECT b.first_index, b.entries, b.sealed_at FROM statesvc.sealed_batch b
        WHERE b.first_index >= begun.at_index AND b.first_index < begun.at_index + %(entries)s::bigint
    ) b
    WHERE b.sealed_at < statesvc.clock() - make_interval(secs => %(settle_seconds)s::float8)
) b;

-- name: spans_again
-- Return the parts to be looked at again.
SELECT r.begins, r.ends FROM statesvc.reconciled r
WHERE r.promise = 'notified' AND r.check_at <= statesvc.clock() ORDER BY r.begins LIMIT %(limit)s;

-- name: count_span
-- Count of the notifications that a part of the log says are due how many there are, how many wait, and how many have neither a row, nor an
-- end in the log, nor a place in the outbox. What was coalesced waits with the later one that covers it, and ends with it. A subscription
-- that was deleted is owed nothing. `recorded_at`: since when the oldest is due.
WITH part AS MATERIALIZED (
    SELECT b.batch_id, b.recorded_from, b.recorded_to FROM statesvc.sealed_batch b
    WHERE b.first_index >= %(begins)s::bigint AND b.first_index < %(ends)s::bigint
), bounds AS MATERIALIZED (
    SELECT min(p.recorded_from) AS recorded_from, max(p.recorded_to) AS recorded_to FROM part p
), due AS MATERIALIZED (
    SELECT f.shipment_id, f.sequence, f.recorded_at, s.subscription_id
    FROM part p
    JOIN statesvc.fanout f ON f.batch_id = p.batch_id AND f.recorded_at >= (SELECT recorded_from FROM bounds)
        AND f.recorded_at <= (SELECT recorded_to FROM bounds)
    CROSS JOIN LATERAL unnest(f.subscriptions) AS s(subscription_id)
), judged AS (
    SELECT d.*, EXISTS (
            SELECT FROM statesvc.outbox o
            WHERE o.subscription_id = d.subscription_id AND o.shipment_id = d.shipment_id
                AND (o.sequence = d.sequence OR EXISTS (
                    SELECT FROM statesvc.notification_gap g
                    WHERE g.shipment_id = d.shipment_id AND g.sequence = o.sequence AND g.subscription_id = d.subscription_id
                        AND d.sequence = ANY (g.covers)))
        ) AS waits, EXISTS (
            SELECT FROM statesvc.notification n
            WHERE n.shipment_id = d.shipment_id AND n.sequence = d.sequence AND n.subscription_id = d.subscription_id
        ) AND (EXISTS (
            SELECT FROM statesvc.attempt a
            WHERE a.shipment_id = d.shipment_id AND a.sequence = d.sequence AND a.subscription_id = d.subscription_id
                AND a.recorded_at >= d.recorded_at - interval '10 seconds' AND a.outcome <> 'late'
        ) OR EXISTS (
            SELECT FROM statesvc.notification_gap g
            JOIN statesvc.attempt a ON a.shipment_id = g.shipment_id AND a.sequence = g.sequence AND a.subscription_id = g.subscription_id
                AND a.recorded_at >= d.recorded_at - interval '10 seconds' AND a.outcome <> 'late'
            WHERE g.shipment_id = d.shipment_id AND g.subscription_id = d.subscription_id AND g.sequence > d.sequence
                AND d.sequence = ANY (g.covers)
        )) AS ended, EXISTS (
            SELECT FROM statesvc.subscription s WHERE s.subscription_id = d.subscription_id AND s.deleted_at IS NOT NULL
        ) AS is_over
    FROM due d
)
SELECT (SELECT recorded_from FROM bounds), count(*), count(*) FILTER (WHERE j.waits AND NOT j.is_over),
    count(*) FILTER (WHERE NOT j.waits AND NOT j.ended AND NOT j.is_over)
FROM judged j;

-- name: keep
-- Store what was found. It is looked at again while something waits, or is missing and may yet be found: later and later, but at least
-- every hour.
INSERT INTO statesvc.reconciled AS r (promise, begins, ends, recorded_at, expected, waiting, missing, check_at)
SELECT %(promise)s, %(begins)s, %(ends)s, %(at)s::timestamptz, %(expected)s, %(waiting)s::bigint, %(missing)s::bigint,
    CASE WHEN %(waiting)s::bigint > 0 OR (%(missing)s::bigint > 0 AND %(young)s) THEN now.at + least(interval '1 hour', greatest(interval '1 minute', (now.at - %(at)s::timestamptz) / 4)) END
FROM (SELECT statesvc.clock() AS at) now
ON CONFLICT (promise, begins) DO UPDATE
SET expected = greatest(r.expected, excluded.expected), waiting = excluded.waiting, check_at = excluded.check_at,
    missing = CASE WHEN %(young)s THEN excluded.missing ELSE greatest(r.missing, excluded.missing) END;

-- name: forget
-- Forget what was found all right and is over for days, and the counts of that time. What is missing stays.
WITH counts AS (
    DELETE FROM statesvc.ack_count t WHERE t.minute < (SELECT statesvc.clock() - interval '8 days')
), spools AS (
    DELETE FROM statesvc.spool s WHERE s.seen_at < (SELECT statesvc.clock() - interval '8 days')
)
DELETE FROM statesvc.reconciled r
WHERE r.recorded_at < (SELECT statesvc.clock() - interval '8 days') AND r.check_at IS NULL AND r.missing = 0
    -- the last one says how far the log was looked at
    AND r.begins < (SELECT max(k.begins) FROM statesvc.reconciled k WHERE k.promise = r.promise);

-- name: summary
-- Return what is missing, what waits, and since when nothing was compared that is over.
SELECT p.promise, coalesce(sum(r.expected), 0)::bigint, coalesce(sum(r.waiting), 0)::bigint, coalesce(sum(r.missing), 0)::bigint,
    extract(epoch FROM statesvc.clock() - max(r.recorded_at))::float8
FROM unnest(ARRAY['settled', 'notified']) AS p(promise)
LEFT JOIN statesvc.reconciled r ON r.promise = p.promise
GROUP BY p.promise ORDER BY p.promise;
