-- name: receivers
-- Return where these subscriptions' notifications go, those of deleted subscriptions too.
SELECT s.subscription_id::text, s.url, s.name FROM statesvc.subscription s WHERE s.subscription_id = ANY (%(subscription_ids)s::uuid[]);
