-- name: service_keys
-- Return the service's own keys.
SELECT name, sealed_key FROM statesvc.service_key;

-- name: rewrap_service_key
-- Wrap the same key under the current master key.
UPDATE statesvc.service_key SET sealed_key = %(new)b WHERE name = %(name)s AND sealed_key = %(old)b;

-- name: subscriptions
-- Return the secrets, logins and own headers of the subscriptions.
SELECT subscription_id, sealed_secrets, sealed_login, sealed_headers FROM statesvc.subscription;

-- name: reseal_secrets
-- Seal the same secrets under the current master key, unless they were rotated meanwhile.
UPDATE statesvc.subscription SET sealed_secrets = %(new)b WHERE subscription_id = %(subscription_id)s AND sealed_secrets = %(old)b::bytea[];

-- name: reseal_login
-- Seal the same login under the current master key, unless it was changed meanwhile.
UPDATE statesvc.subscription SET sealed_login = %(new)b WHERE subscription_id = %(subscription_id)s AND sealed_login = %(old)b;

-- name: reseal_headers
-- Seal the same headers under the current master key, unless they were changed meanwhile.
UPDATE statesvc.subscription SET sealed_headers = %(new)b WHERE subscription_id = %(subscription_id)s AND sealed_headers = %(old)b;

-- name: count_streams
-- Return about how many shipments there are.
SELECT greatest(c.reltuples, 0)::bigint FROM pg_class c WHERE c.oid = 'statesvc.stream'::regclass;

-- name: streams
-- Return some shipments' keys, in their order.
SELECT shipment_id, sealed_key FROM statesvc.stream
WHERE shipment_id > %(after)s AND sealed_key IS NOT NULL ORDER BY shipment_id LIMIT %(limit)s;

-- name: rewrap_streams
-- Wrap the same keys under the current master key; an erasure that came between is not undone.
UPDATE statesvc.stream s SET sealed_key = u.new
FROM unnest(%(shipment_ids)b::uuid[], %(olds)b::bytea[], %(news)b::bytea[]) AS u(shipment_id, old, new)
WHERE s.shipment_id = u.shipment_id AND s.sealed_key = u.old;

-- name: rewrap_root_key
-- Wrap the root key under a newer version of the KMS's.
UPDATE statesvc.root_key SET wrapped = %(new)b, wrapped_at = statesvc.clock() WHERE kms = %(kms)s AND wrapped = %(old)b;
