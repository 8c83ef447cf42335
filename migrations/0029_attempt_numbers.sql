-- A replayed notification's attempts are numbered on from the highest number in the log.
--
-- The sum over its dead letters fell short of it when the notification had been delivered and was told again at its subscriber's wish,
-- so the log held two attempts of one number.

-- Puts messages back into the inbox, under their old ids, with their keys and as if never tried, and notifications back into the outbox,
-- under their old webhook ids; resolves their letters. Answers for each letter what stood in the way (`read_again`: it is of the kind that
-- is read again instead); NULL: it was put back.
CREATE OR REPLACE FUNCTION statesvc.replay_dead_letters(p_ids bigint[], p_actor text, p_why text, p_run_id uuid)
    RETURNS TABLE (dead_letter_id bigint, obstacle text)
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := statesvc.clock();
BEGIN
    -- In one order, so that two replays wait for each other instead of deadlocking. Before the inbox, against the lock order, because
    -- nobody can wait there: as long as its letter is open, a message is in no queue.
    PERFORM FROM statesvc.dead_letter d WHERE d.dead_letter_id = ANY (p_ids) ORDER BY d.dead_letter_id FOR UPDATE;
    -- a statement of its own: it sees what was committed while the locks were waited for
    RETURN QUERY
    WITH letter AS MATERIALIZED (
        SELECT d.*, statesvc.replay_obstacle(d) AS obstacle FROM statesvc.dead_letter d WHERE d.dead_letter_id = ANY (p_ids)
    ), lane AS (
        INSERT INTO statesvc.lane (carrier_id)
        SELECT DISTINCT l.carrier_id FROM letter l
        WHERE l.kind = 'message' AND l.obstacle IS NULL AND NOT EXISTS (SELECT FROM statesvc.lane k WHERE k.carrier_id = l.carrier_id)
        ORDER BY l.carrier_id ON CONFLICT DO NOTHING
    ), message AS (
        INSERT INTO statesvc.inbox (message_id, received_at, available_at, body_bytes, carrier_id, sealed_key)
        SELECT l.message_id, l.received_at, v_now,
            coalesce((SELECT octet_length(b.sealed) FROM statesvc.body b WHERE b.message_id = l.message_id AND b.received_at = l.received_at),
                (SELECT octet_length(k.sealed) FROM statesvc.body_kept k WHERE k.message_id = l.message_id)),
            l.carrier_id, l.sealed_key
        FROM letter l WHERE l.kind = 'message' AND l.cause <> 'rejected_member' AND l.obstacle IS NULL
        ORDER BY l.message_id
        ON CONFLICT DO NOTHING
        RETURNING message_id
    ), notification AS (
        INSERT INTO statesvc.outbox (subscription_id, shipment_id, sequence, available_at, created_at, earlier_attempts)
        SELECT l.subscription_id, l.shipment_id, l.sequence, v_now, v_now,
            least(30000, coalesce((SELECT max(p.number) FROM statesvc.attempt p
                WHERE p.shipment_id = l.shipment_id AND p.sequence = l.sequence AND p.subscription_id = l.subscription_id), 0))
        FROM letter l WHERE l.kind = 'notification' AND l.obstacle IS NULL
        ORDER BY l.subscription_id, l.shipment_id, l.sequence
        ON CONFLICT DO NOTHING
        RETURNING subscription_id, shipment_id, sequence
    ), resolved AS (
        UPDATE statesvc.dead_letter d
        SET resolved_at = v_now, resolution = 'replayed', resolved_by = p_actor, why = p_why, run_id = p_run_id
        FROM letter l
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
    FROM letter l LEFT JOIN resolved r ON r.dead_letter_id = l.dead_letter_id ORDER BY l.dead_letter_id;
END
$$;
