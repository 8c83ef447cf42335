-- name: share_grants
-- Return the scopes of an owner's live keys; none of them is revoked until the transaction ends.
SELECT k.scopes FROM statesvc.api_key k
WHERE k.owner = %(owner)s AND k.revoked_at IS NULL AND coalesce(k.expires_at > statesvc.clock(), true)
ORDER BY k.key_id FOR SHARE;

-- name: lock_keys
-- Lock all keys of the owner of this one, so that two revocations do not each count on the other's key.
SELECT k.key_id FROM statesvc.api_key k WHERE k.owner = (SELECT o.owner FROM statesvc.api_key o WHERE o.key_id = %(key_id)s)
ORDER BY k.key_id FOR NO KEY UPDATE;

-- name: revoke
-- End a key; no row where it is unknown or ended already.
UPDATE statesvc.api_key SET revoked_at = statesvc.clock() WHERE key_id = %(key_id)s AND revoked_at IS NULL
RETURNING name, owner, revoked_at;

-- name: expired
-- Return the keys whose time is over.
SELECT key_id FROM statesvc.api_key WHERE revoked_at IS NULL AND expires_at <= statesvc.clock() ORDER BY key_id;

-- name: disable_uncovered
-- Disable the owner's subscriptions that need a scope which no live key of the owner has any more. Return them with what they need.
WITH left_over AS (
    SELECT coalesce(array_agg(DISTINCT w.scope), '{}') AS scopes
    FROM statesvc.api_key k CROSS JOIN unnest(k.scopes) AS w(scope)
    WHERE k.owner = %(owner)s AND k.revoked_at IS NULL AND coalesce(k.expires_at > statesvc.clock(), true)
), uncovered AS MATERIALIZED (
    SELECT s.subscription_id, n.needs FROM statesvc.subscription s
    CROSS JOIN left_over g
    CROSS JOIN LATERAL (SELECT ARRAY['subscriptions'] || CASE WHEN s.payload = 'full' THEN ARRAY['read'] END
        || CASE WHEN s.pii THEN ARRAY['pii'] END
        || CASE WHEN array_to_string(s.types, ' ') LIKE '%%operator.%%' THEN ARRAY['ops'] END AS needs) n
    WHERE s.owner = %(owner)s AND s.deleted_at IS NULL AND s.disabled_at IS NULL
        AND NOT 'admin' = ANY (g.scopes) AND NOT g.scopes @> n.needs
    ORDER BY s.subscription_id FOR NO KEY UPDATE OF s
)
UPDATE statesvc.subscription s SET disabled_at = %(now)s, missed_since = least(s.missed_since, %(now)s), disabled_why = %(why)s
FROM uncovered u CROSS JOIN LATERAL statesvc.open_notifications(u.subscription_id) w WHERE s.subscription_id = u.subscription_id
RETURNING s.subscription_id, u.needs, s.missed_since, w.open, w.open_since, w.open_until;
