-- name: purge
-- Removes what waits for deleted subscriptions, except what is being sent.
DELETE FROM statesvc.outbox o WHERE o.ctid = ANY (ARRAY(
    SELECT q.ctid FROM statesvc.subscription s JOIN statesvc.outbox q ON q.subscription_id = s.subscription_id
    WHERE s.deleted_at IS NOT NULL AND q.token IS NULL LIMIT %(limit)s FOR UPDATE OF q SKIP LOCKED))
RETURNING o.subscription_id, o.shipment_id, o.sequence;
