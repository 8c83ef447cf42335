-- name: find
-- Return which parts of the upkeep have anything to do: something waits for a deleted subscription; a notifier died and did not withdraw
-- what it showed; a receiver has failed for so long that it may be to be reviewed; an incident is to be sent to a subscription.
SELECT
    EXISTS (SELECT FROM statesvc.subscription s JOIN statesvc.outbox q ON q.subscription_id = s.subscription_id WHERE s.deleted_at IS NOT NULL),
    EXISTS (SELECT FROM statesvc.limiter_state l WHERE l.updated_at < statesvc.clock() - interval '1 hour'),
    EXISTS (SELECT FROM statesvc.subscription_failing f WHERE f.since <= statesvc.clock() - make_interval(secs => %(warn_seconds)s::float8)),
    EXISTS (SELECT FROM statesvc.operator_incident)
        OR EXISTS (SELECT FROM statesvc.subscription s WHERE s.types && %(types)s::text[] AND s.deleted_at IS NULL AND s.disabled_at IS NULL);

-- name: purge
-- Remove what waits for deleted subscriptions, except what is being sent.
DELETE FROM statesvc.outbox o WHERE o.ctid = ANY (ARRAY(
    SELECT q.ctid FROM statesvc.subscription s JOIN statesvc.outbox q ON q.subscription_id = s.subscription_id
    WHERE s.deleted_at IS NOT NULL AND q.token IS NULL LIMIT %(limit)s FOR UPDATE OF q SKIP LOCKED))
RETURNING o.subscription_id, o.shipment_id, o.sequence;

-- name: repair_outbox
-- Make due first attempts that wait for time though nothing of their shipment is before them; retries that wait longer than their delay,
-- though the attempt before is recorded in the future or no receiver may ask for so much; leases of an age that none has (these after a
-- minute: who holds one may be sending). A contracted rate is never spent in advance. A receiver that asked not to be called for a while,
-- at a time that has not come yet, asked for something else; what a notifier shows is of now.
WITH tick AS MATERIALIZED (
    SELECT statesvc.clock() AS at
), first AS MATERIALIZED (
    SELECT q.row_id FROM statesvc.subscription s CROSS JOIN tick t CROSS JOIN LATERAL (
        SELECT o.ctid AS row_id FROM statesvc.outbox o
        WHERE o.subscription_id = s.subscription_id AND o.attempts = 0 AND o.token IS NULL AND o.available_at > t.at + interval '5 seconds'
            AND NOT EXISTS (SELECT FROM statesvc.outbox e
                WHERE e.subscription_id = o.subscription_id AND e.shipment_id = o.shipment_id AND e.sequence < o.sequence)
        LIMIT %(limit)s FOR UPDATE OF o SKIP LOCKED
    ) q WHERE s.deleted_at IS NULL
), again AS MATERIALIZED (
    SELECT q.row_id FROM statesvc.subscription s CROSS JOIN tick t CROSS JOIN LATERAL (
        SELECT o.ctid AS row_id FROM statesvc.outbox o
        WHERE o.subscription_id = s.subscription_id AND o.attempts > 0 AND o.token IS NULL
            AND o.available_at > t.at + make_interval(secs => 5 + (%(delays)s::float8[])[least(o.attempts, cardinality(%(delays)s::float8[]))])
            AND (o.available_at > t.at + make_interval(secs => 5 + %(delay_max)s::float8) OR EXISTS (
                SELECT FROM statesvc.open_attempt a
                WHERE a.shipment_id = o.shipment_id AND a.sequence = o.sequence AND a.subscription_id = o.subscription_id
                    AND a.recorded_at > t.at + interval '5 seconds'))
        LIMIT %(limit)s FOR UPDATE OF o SKIP LOCKED
    ) q WHERE s.deleted_at IS NULL
), leased AS MATERIALIZED (
    SELECT q.row_id FROM statesvc.subscription s CROSS JOIN tick t CROSS JOIN LATERAL (
        SELECT o.ctid AS row_id FROM statesvc.outbox o
        WHERE o.subscription_id = s.subscription_id AND o.attempts > 0 AND o.token IS NOT NULL
            AND o.available_at > t.at + make_interval(secs => %(lease_max)s::float8)
        LIMIT %(limit)s FOR UPDATE OF o SKIP LOCKED
    ) q WHERE s.deleted_at IS NULL
), throttled AS MATERIALIZED (
    SELECT h.subscription_id, h.spent_until > t.at + interval '5 seconds' AS spent_ahead,
        h.not_before > t.at + make_interval(secs => 5 + %(delay_max)s::float8) OR (h.not_before > t.at + interval '5 seconds' AND EXISTS (
            SELECT FROM statesvc.open_attempt a
            WHERE a.subscription_id = h.subscription_id AND a.recorded_at > t.at + interval '5 seconds')) AS asked_ahead
    FROM statesvc.throttle h CROSS JOIN tick t
    WHERE greatest(h.spent_until, h.not_before) > t.at + interval '5 seconds'
), unspent AS (
    UPDATE statesvc.throttle h SET spent_until = least(h.spent_until, t.at),
        not_before = CASE WHEN r.asked_ahead THEN t.at ELSE h.not_before END
    FROM throttled r CROSS JOIN tick t
    WHERE h.subscription_id = r.subscription_id AND (r.spent_ahead OR r.asked_ahead)
    RETURNING h.subscription_id
), shown AS (
    UPDATE statesvc.limiter_state l SET updated_at = t.at, open_until = t.at + (l.open_until - l.updated_at) FROM tick t
    WHERE l.updated_at > t.at + interval '5 seconds' RETURNING l.worker
), repaired AS (
    UPDATE statesvc.outbox o SET available_at = (SELECT t.at FROM tick t) + CASE WHEN o.token IS NULL THEN interval '0' ELSE interval '1 minute' END
    WHERE o.ctid = ANY (ARRAY(
        SELECT f.row_id FROM first f UNION ALL SELECT a.row_id FROM again a UNION ALL SELECT d.row_id FROM leased d))
    RETURNING o.shipment_id
)
SELECT (SELECT count(*) FROM repaired), (SELECT count(*) FROM unspent), (SELECT count(*) FROM shown);
