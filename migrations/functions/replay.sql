-- Replay: what waits for a human goes back where it came from, once. And what a message that is read again needs.
--
-- A dead letter is resolved in the statement that puts its message into the inbox, or its notification into the outbox: a crash leaves
-- both or neither, and of two replays the second finds it resolved. `replay_obstacle` is the one place that says why a dead letter
-- cannot go back; plans, answers and the replay itself ask it.

-- Why a dead letter cannot be replayed; NULL: it can. The words of statesvc/repair/dead_letters/dead_letter.py. Dead letters of codes and of
-- rejected members are read again instead of put back; what stands in their way shows when they are.
CREATE FUNCTION statesvc.replay_obstacle(d statesvc.dead_letter) RETURNS text
    LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN d.resolved_at IS NOT NULL THEN d.resolution
        WHEN d.kind = 'message' AND d.cause <> 'rejected_member' THEN CASE
            WHEN EXISTS (SELECT FROM statesvc.inbox q WHERE q.message_id = d.message_id) THEN 'waiting'
            WHEN EXISTS (SELECT FROM statesvc.message m WHERE m.message_id = d.message_id AND m.received_at = d.received_at) THEN 'settled'
            WHEN d.sealed_key IS NULL THEN 'erased'
            WHEN NOT EXISTS (SELECT FROM statesvc.body b WHERE b.message_id = d.message_id AND b.received_at = d.received_at)
                AND NOT EXISTS (SELECT FROM statesvc.body_retained k WHERE k.message_id = d.message_id) THEN 'body_gone'
            WHEN statesvc.held(d.carrier_id) THEN 'held'
        END
        WHEN d.kind = 'notification' THEN CASE
            WHEN NOT EXISTS (SELECT FROM statesvc.notification n WHERE n.shipment_id = d.shipment_id AND n.sequence = d.sequence
                AND n.subscription_id = d.subscription_id) THEN 'notification_gone'
            WHEN EXISTS (SELECT FROM statesvc.outbox o WHERE o.subscription_id = d.subscription_id AND o.shipment_id = d.shipment_id
                AND o.sequence = d.sequence) THEN 'waiting'
            ELSE (SELECT CASE WHEN s.deleted_at IS NOT NULL THEN 'subscription_gone' WHEN s.disabled_at IS NOT NULL THEN 'subscription_disabled' END
                FROM statesvc.subscription s WHERE s.subscription_id = d.subscription_id)
        END
    END
$$;

-- The number of the last recorded attempt at a notification; 0: none was made. Replays number theirs on from it.
CREATE FUNCTION statesvc.last_attempt(p_subscription_id uuid, p_shipment_id uuid, p_sequence int) RETURNS int
    LANGUAGE sql STABLE AS $$
    SELECT coalesce(max(x.number), 0) FROM (
        SELECT a.number FROM statesvc.attempt a
        WHERE a.shipment_id = p_shipment_id AND a.sequence = p_sequence AND a.subscription_id = p_subscription_id
        UNION ALL
        SELECT t.number FROM statesvc.attempt a
        CROSS JOIN LATERAL jsonb_to_recordset(a.tries) AS t(sequence int, number int)
        WHERE a.shipment_id = p_shipment_id AND a.sequence > p_sequence AND a.subscription_id = p_subscription_id
            AND t.sequence = p_sequence
        UNION ALL
        SELECT o.number FROM statesvc.open_attempt o
        WHERE o.shipment_id = p_shipment_id AND o.sequence = p_sequence AND o.subscription_id = p_subscription_id
    ) x
$$;

-- Puts messages back into the inbox, under their old ids, with their keys and as if never tried, and notifications back into the
-- outbox, under their old webhook ids; resolves their dead letters. A notification's attempts are numbered on. Answers for each dead letter what stood in the way (`read_again`: it is of a kind that is read again instead); NULL: it
-- was put back.
CREATE FUNCTION statesvc.replay_dead_letters(p_ids bigint[], p_actor text, p_why text, p_run_id uuid)
    RETURNS TABLE (dead_letter_id bigint, obstacle text)
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := statesvc.clock();
BEGIN
    -- In one order, so that two replays wait for each other instead of deadlocking. Before the inbox, against the lock order, because
    -- nobody can wait there: as long as its dead letter is open, a message is in no queue.
    PERFORM FROM statesvc.dead_letter d WHERE d.dead_letter_id = ANY (p_ids) ORDER BY d.dead_letter_id FOR UPDATE;
    -- a statement of its own: it sees what was committed while the locks were waited for
    RETURN QUERY
    WITH chosen AS MATERIALIZED (
        SELECT d.*, statesvc.replay_obstacle(d) AS obstacle FROM statesvc.dead_letter d WHERE d.dead_letter_id = ANY (p_ids)
    ), lane AS (
        INSERT INTO statesvc.lane (carrier_id)
        SELECT DISTINCT l.carrier_id FROM chosen l
        WHERE l.kind = 'message' AND l.obstacle IS NULL AND NOT EXISTS (SELECT FROM statesvc.lane k WHERE k.carrier_id = l.carrier_id)
        ORDER BY l.carrier_id ON CONFLICT (carrier_id) DO NOTHING
    ), message AS (
        INSERT INTO statesvc.inbox (message_id, received_at, available_at, body_bytes, carrier_id, sealed_key)
        SELECT l.message_id, l.received_at, v_now,
            coalesce((SELECT octet_length(b.sealed) FROM statesvc.body b WHERE b.message_id = l.message_id AND b.received_at = l.received_at),
                (SELECT octet_length(k.sealed) FROM statesvc.body_retained k WHERE k.message_id = l.message_id)),
            l.carrier_id, l.sealed_key
        FROM chosen l WHERE l.kind = 'message' AND l.cause <> 'rejected_member' AND l.obstacle IS NULL
        ORDER BY l.message_id
        ON CONFLICT (message_id) DO NOTHING
        RETURNING message_id
    ), notification AS (
        INSERT INTO statesvc.outbox (subscription_id, shipment_id, sequence, available_at, created_at, earlier_attempts)
        SELECT l.subscription_id, l.shipment_id, l.sequence, v_now, v_now,
            least(30000, statesvc.last_attempt(l.subscription_id, l.shipment_id, l.sequence))
        FROM chosen l WHERE l.kind = 'notification' AND l.obstacle IS NULL
        ORDER BY l.subscription_id, l.shipment_id, l.sequence
        ON CONFLICT (subscription_id, shipment_id, sequence) DO NOTHING
        RETURNING subscription_id, shipment_id, sequence
    ), resolved AS (
        UPDATE statesvc.dead_letter d
        SET resolved_at = v_now, resolution = 'replayed', resolved_by = p_actor, why = p_why, run_id = p_run_id
        FROM chosen l
        WHERE d.dead_letter_id = l.dead_letter_id AND l.obstacle IS NULL
            AND (EXISTS (SELECT FROM message m WHERE m.message_id = l.message_id AND l.kind = 'message')
                OR EXISTS (SELECT FROM notification n WHERE n.subscription_id = l.subscription_id AND n.shipment_id = l.shipment_id
                    AND n.sequence = l.sequence))
        RETURNING d.dead_letter_id
    )
    SELECT l.dead_letter_id, CASE
        WHEN r.dead_letter_id IS NOT NULL THEN NULL
        WHEN l.obstacle IS NULL AND (l.kind = 'code' OR l.cause = 'rejected_member') THEN 'read_again'
        ELSE coalesce(l.obstacle, 'waiting')
    END
    FROM chosen l LEFT JOIN resolved r ON r.dead_letter_id = l.dead_letter_id ORDER BY l.dead_letter_id;
END
$$;

-- A message that is read again may name more shipments than at first: its body's key is then wrapped under their keys too, so that
-- erasing any of them makes the body unreadable. It runs as its owner, because the service may not change verdicts; it only adds
-- shipments, and never brings back a key that was erased.
CREATE FUNCTION statesvc.name_shipments(p_message_id uuid, p_received_at timestamptz, p_shipments uuid[], p_sealed_key bytea) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE statesvc.message m SET shipments = p_shipments, sealed_key = p_sealed_key
    WHERE m.message_id = p_message_id AND m.received_at = p_received_at AND m.shipments <@ p_shipments AND m.sealed_key IS NOT NULL;
    RETURN FOUND;
END
$$;
REVOKE EXECUTE ON FUNCTION statesvc.name_shipments(uuid, timestamptz, uuid[], bytea) FROM PUBLIC;
