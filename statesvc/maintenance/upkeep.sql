-- name: ensure_partitions
-- Make the partitions ahead; without them every append would stop at the end of the month.
SELECT count(*) FROM statesvc.ensure_partitions();

-- name: expire_receipts
-- Forget a bounded number of retries' digests after their 48 hours, or when they are retained no longer. The cutoff is a subquery, so that
-- the index can be used.
DELETE FROM statesvc.receipt WHERE digest = ANY (ARRAY(
    SELECT r.digest FROM statesvc.receipt r
    WHERE r.received_at < (SELECT statesvc.clock() - interval '48 hours') AND statesvc.receipt_ended(r, (SELECT statesvc.clock()))
    LIMIT %(limit)s FOR UPDATE SKIP LOCKED));

-- name: forget_attempts
-- Forget a bounded number of attempts after 90 days; those of a message that still waits, or lies in an open dead letter, stay.
DELETE FROM statesvc.message_attempt WHERE attempt_id = ANY (ARRAY(
    SELECT a.attempt_id FROM statesvc.message_attempt a
    WHERE a.ended_at < (SELECT statesvc.clock() - interval '90 days')
        AND NOT EXISTS (SELECT FROM statesvc.inbox q WHERE q.message_id = a.message_id)
        AND NOT EXISTS (SELECT FROM statesvc.dead_letter d WHERE d.message_id = a.message_id AND d.kind = 'message' AND d.resolved_at IS NULL)
    LIMIT %(limit)s));

-- name: forget_dead_letters
-- Forget a bounded number of dead letters 400 days after a human resolved them; what was done stands in the log. Open ones stay.
DELETE FROM statesvc.dead_letter WHERE dead_letter_id = ANY (ARRAY(
    SELECT d.dead_letter_id FROM statesvc.dead_letter d
    WHERE d.resolved_at < (SELECT statesvc.clock() - interval '400 days')
    LIMIT %(limit)s FOR UPDATE SKIP LOCKED));

-- name: forget_notices
-- Forget a bounded number of notices after 400 days; those that nobody saw stay.
DELETE FROM statesvc.notice WHERE notice_id = ANY (ARRAY(
    SELECT n.notice_id FROM statesvc.notice n
    WHERE n.created_at < (SELECT statesvc.clock() - interval '400 days') AND n.seen_at IS NOT NULL
    ORDER BY n.notice_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED));

-- name: forget_trials
-- Forget a bounded number of trials that nobody makes any more: each batch that writes some drops those of its carrier.
DELETE FROM statesvc.trial WHERE trial_id = ANY (ARRAY(
    SELECT t.trial_id FROM statesvc.trial t WHERE t.ends_at < (SELECT statesvc.clock()) LIMIT %(limit)s FOR UPDATE SKIP LOCKED));

-- name: forget_readers
-- Forget a bounded number of readers a week after they last asked for anything.
DELETE FROM statesvc.reader k WHERE (k.carrier_id, k.normalizer) IN (
    SELECT o.carrier_id, o.normalizer FROM statesvc.reader o
    WHERE greatest(o.asked_at, o.tried_at, o.fallback_at) < (SELECT statesvc.clock() - interval '7 days')
    LIMIT %(limit)s FOR UPDATE SKIP LOCKED);

-- name: forget_named_streams
-- Forget a bounded number of streams with nothing but a key whose last message has expired.
SELECT statesvc.forget_named_streams(%(limit)s);

-- name: forget_workers
-- Forget processes that have been silent for a day; a clean exit takes its row along.
DELETE FROM statesvc.worker w WHERE w.last_seen_at < statesvc.clock() - interval '1 day';

-- name: repair_inbox
-- Make due what was put, or given back, at a time that has not come yet: a clock was ahead. So too what nothing explains; an ETA explains
-- any time. Of a lane whose mark is in the future claims would see nothing new, so that begins anew.
WITH tick AS MATERIALIZED (
    SELECT statesvc.clock() AS at
), waiting AS MATERIALIZED (
    SELECT q.row_id FROM statesvc.lane l CROSS JOIN tick t CROSS JOIN LATERAL (
        SELECT o.ctid AS row_id FROM statesvc.inbox o
        WHERE o.carrier_id = l.carrier_id AND o.token IS NULL AND o.available_at > t.at + interval '5 seconds'
            AND o.available_at IS DISTINCT FROM o.eta
            AND (o.received_at > t.at + interval '5 seconds' OR o.available_at > t.at + interval '7 days'
                OR EXISTS (SELECT FROM statesvc.message_attempt a
                    WHERE a.message_id = o.message_id AND a.ended_at > t.at + interval '5 seconds'))
        LIMIT %(limit)s FOR UPDATE OF o SKIP LOCKED
    ) q
), leased AS MATERIALIZED (
    SELECT o.ctid AS row_id FROM statesvc.inbox o
    WHERE o.token IS NOT NULL AND o.available_at > (SELECT t.at FROM tick t) + interval '1 day'
    LIMIT %(limit)s FOR UPDATE OF o SKIP LOCKED
), begun_anew AS (
    UPDATE statesvc.lane l SET low_water = '-infinity', raw_low_water = '-infinity' FROM tick t
    WHERE greatest(l.low_water, l.raw_low_water) > t.at + interval '5 seconds' RETURNING l.carrier_id
), repaired AS (
    UPDATE statesvc.inbox o SET available_at = (SELECT t.at FROM tick t)
    WHERE o.ctid = ANY (ARRAY(SELECT w.row_id FROM waiting w UNION ALL SELECT d.row_id FROM leased d))
    RETURNING o.message_id
)
SELECT (SELECT count(*) FROM repaired), (SELECT count(*) FROM begun_anew);

-- name: future
-- Return how far the latest time lies in the future that a queue wrote as the present, in seconds. One row of each index a lane.
SELECT extract(epoch FROM greatest(
    (SELECT max(q.received_at) FROM statesvc.lane l CROSS JOIN LATERAL (
        SELECT o.received_at FROM statesvc.inbox o WHERE o.carrier_id = l.carrier_id AND o.token IS NULL
        ORDER BY o.available_at DESC LIMIT 1) q),
    (SELECT max(q.created_at) FROM statesvc.subscription s CROSS JOIN LATERAL (
        SELECT o.created_at FROM statesvc.outbox o WHERE o.subscription_id = s.subscription_id AND o.attempts = 0
        ORDER BY o.available_at DESC LIMIT 1) q),
    (SELECT max(greatest(l.low_water, l.raw_low_water)) FROM statesvc.lane l),
    (SELECT max(h.spent_until) FROM statesvc.throttle h),
    statesvc.clock()) - statesvc.clock())::float8;
