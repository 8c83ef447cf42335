-- What of a subscription has not ended: how many notifications wait, and from when to when they were put into the outbox. The entry of an
-- action that keeps them from being sent (it is disabled, or deleted) says so.
CREATE FUNCTION statesvc.open_notifications(p_subscription_id uuid, OUT open bigint, OUT open_since timestamptz, OUT open_until timestamptz)
    LANGUAGE sql STABLE AS $$
    SELECT count(*), min(o.created_at), max(o.created_at) FROM statesvc.outbox o WHERE o.subscription_id = p_subscription_id
$$;
