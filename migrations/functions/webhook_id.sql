-- The webhook-id of a notification: of its subscription, and of the event that it names, by the event's leaf hash. What was sent before keeps
-- its id, also when it is replayed; what another history says in its place, after a restore, has another.
CREATE FUNCTION statesvc.webhook_id(p_subscription_id uuid, p_leaf_hash bytea) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN 'n1-' || left(encode(sha256(uuid_send(p_subscription_id) || p_leaf_hash), 'hex'), 32);
