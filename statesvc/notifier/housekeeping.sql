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
