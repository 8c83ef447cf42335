-- name: carriers_here
-- Return the carriers that have messages or shipments in this cell, one probe of an index each.
SELECT c.carrier_id
FROM unnest(%(carriers)s::text[]) AS c (carrier_id)
WHERE EXISTS (SELECT FROM statesvc.stream s WHERE s.carrier_id = c.carrier_id)
    OR EXISTS (SELECT FROM statesvc.inbox i WHERE i.carrier_id = c.carrier_id)
ORDER BY 1;

-- name: log_origins
-- Return the name of the log, which is the same under all of its keys.
SELECT DISTINCT origin FROM statesvc.signing_key;

-- name: live_keys
-- Return the public ids of the keys that are good here.
SELECT key_id FROM statesvc.api_key WHERE revoked_at IS NULL;

-- name: live_subscriptions
-- Return the ids of the subscriptions that are not deleted.
SELECT subscription_id::text FROM statesvc.subscription WHERE deleted_at IS NULL;
