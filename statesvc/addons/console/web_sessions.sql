-- name: begin
-- Store the hash of a new session's token.
INSERT INTO statesvc.console_session (token_hash, key_id, key_hash, may_change, created_at, expires_at)
SELECT %(token_hash)s, %(key_id)s, %(key_hash)s, %(may_change)s, c.at, c.at + make_interval(secs => %(seconds)s)
FROM (SELECT statesvc.clock() AS at) c;

-- name: find
-- Return a session that has not expired and whose key is not revoked. What the key may is asked of the keys.
SELECT s.key_id, s.key_hash, s.may_change FROM statesvc.console_session s
WHERE s.token_hash = %(token_hash)s AND s.expires_at > statesvc.clock()
    AND NOT EXISTS (SELECT FROM statesvc.api_key k WHERE k.key_id = s.key_id AND k.revoked_at IS NOT NULL);

-- name: set_may_change
-- Allow or end changes in one session.
UPDATE statesvc.console_session SET may_change = %(may_change)s WHERE token_hash = %(token_hash)s;

-- name: end
-- End one session.
DELETE FROM statesvc.console_session WHERE token_hash = %(token_hash)s;

-- name: forget
-- Take away sessions that have expired, and the oldest of a key that has too many.
DELETE FROM statesvc.console_session s
WHERE s.expires_at <= statesvc.clock()
    OR s.token_hash IN (
        SELECT o.token_hash FROM statesvc.console_session o WHERE o.key_id = %(key_id)s ORDER BY o.created_at DESC OFFSET %(sessions_max)s
    );
