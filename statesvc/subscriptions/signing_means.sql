-- name: read_means
-- Return where a subscription's notifications go, its sealed secrets, login and headers, and the time, for a test.
SELECT sealed_secrets, statesvc.clock(), url, sealed_login, sealed_headers, second_signature, payload, pii FROM statesvc.subscription
WHERE subscription_id = %(subscription_id)s AND deleted_at IS NULL;

-- name: read_all_secrets
-- Return the sealed secrets of several subscriptions and the time, for their public keys.
SELECT subscription_id, sealed_secrets, statesvc.clock() FROM statesvc.subscription
WHERE subscription_id = ANY (%(subscription_ids)s::uuid[]) AND deleted_at IS NULL;
