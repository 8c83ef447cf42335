-- The claim protocol: the functions through which any program in any language works on the inbox (docs/claim-protocol.md).
--
-- A claim leases messages to a worker under one fencing token until `available_at`; whoever presents the token afterwards
-- acts on those messages only that still carry it. Attempts are counted at claim, so that a message which kills its worker
-- is charged although nobody lives to report it; a message whose last attempt ended without a verdict is claimed alone from
-- then on, and is buried after 5 such attempts. Claims look from each lane's low-water mark: under a pinned xmin, dead
-- index entries below it would otherwise be walked again by every claim.
--
-- Lock order: messages before everything else.

-- Stores a group of messages and queues them; a byte-identical retry within 48 hours is counted and answered with the first
-- message's id. One round trip, whatever the size; the caller commits, then ACKs. Never notifies: see statesvc.wakeup.
CREATE FUNCTION statesvc.put(
    p_message_ids uuid[], p_carrier_ids text[], p_digests bytea[], p_sealed bytea[], p_sealed_keys bytea[],
    p_commitments bytea[], p_headers jsonb[], p_body_bytes int[]
) RETURNS TABLE (ordinal int, message_id uuid, duplicate boolean)
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := statesvc.clock();
BEGIN
    INSERT INTO statesvc.lane (carrier_id)
        SELECT DISTINCT c FROM unnest(p_carrier_ids) c
        WHERE NOT EXISTS (SELECT FROM statesvc.lane l WHERE l.carrier_id = c)
        ORDER BY c ON CONFLICT DO NOTHING;
    RETURN QUERY
    WITH item AS (
        SELECT u.*, (row_number() OVER (PARTITION BY u.digest ORDER BY u.ordinal)) = 1 AS first
        FROM unnest(p_message_ids, p_carrier_ids, p_digests, p_sealed, p_sealed_keys, p_commitments, p_headers, p_body_bytes)
            WITH ORDINALITY AS u(message_id, carrier_id, digest, sealed, sealed_key, commitment, headers, body_bytes, ordinal)
    ), kept AS (
        -- sorted, so that two groups with the same retries wait for each other instead of deadlocking
        INSERT INTO statesvc.receipt AS r (digest, message_id, received_at, retries)
        SELECT i.digest, i.message_id, v_now, (SELECT count(*) - 1 FROM item s WHERE s.digest = i.digest)
        FROM item i WHERE i.first ORDER BY i.digest
        ON CONFLICT (digest) DO UPDATE SET
            message_id = CASE WHEN r.received_at < v_now - interval '48 hours' THEN excluded.message_id ELSE r.message_id END,
            retries = CASE WHEN r.received_at < v_now - interval '48 hours' THEN excluded.retries ELSE r.retries + 1 + excluded.retries END,
            received_at = CASE WHEN r.received_at < v_now - interval '48 hours' THEN excluded.received_at ELSE r.received_at END
        RETURNING r.digest, r.message_id
    ), fresh AS (
        SELECT i.* FROM item i JOIN kept k ON k.digest = i.digest AND k.message_id = i.message_id WHERE i.first
    ), stored AS (
        INSERT INTO statesvc.body (message_id, received_at, carrier_id, commitment, headers, sealed)
        SELECT f.message_id, v_now, f.carrier_id, f.commitment, f.headers, f.sealed FROM fresh f
    ), queued AS (
        INSERT INTO statesvc.inbox (message_id, received_at, available_at, body_bytes, carrier_id, sealed_key)
        SELECT f.message_id, v_now, v_now, f.body_bytes, f.carrier_id, f.sealed_key FROM fresh f
    )
    SELECT i.ordinal::int, k.message_id, NOT (i.first AND k.message_id = i.message_id)
    FROM item i JOIN kept k ON k.digest = i.digest ORDER BY i.ordinal;
END
$$;

-- Is this carrier's kill switch, or the one of all, on?
CREATE FUNCTION statesvc.held(p_carrier_id text) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN EXISTS (SELECT FROM statesvc.rollout r WHERE r.carrier_id IN (p_carrier_id, '*') AND r.hold);

-- Takes a message out of the inbox into the dead letters. Internal: the caller holds the row's lock.
CREATE FUNCTION statesvc.bury_locked(p_message_id uuid, p_cause text, p_detail text) RETURNS void
    LANGUAGE sql
    BEGIN ATOMIC
        WITH gone AS (
            DELETE FROM statesvc.inbox WHERE message_id = p_message_id RETURNING *
        )
        INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at, message_id, received_at, detail, attempts, worker, sealed_key)
        SELECT 'message', p_cause, carrier_id, statesvc.clock(), message_id, received_at, p_detail, attempts, worker, sealed_key FROM gone
        ON CONFLICT DO NOTHING;
    END;

-- Leases up to `p_limit` messages (and `p_bytes_max` of bodies, at least one) to `p_worker` for `p_lease`.
-- Every lane first gets an equal share, what is left over goes to whoever has work. `p_stage`: 'raw' for a foreign
-- normalizing worker, 'any' for the workers that append. `p_sweep` looks below the low-water marks.
CREATE FUNCTION statesvc.claim(
    p_worker text, p_limit int, p_lease interval, p_stage text DEFAULT 'raw', p_bytes_max bigint DEFAULT 4194304,
    p_sweep boolean DEFAULT false
) RETURNS TABLE (
    message_id uuid, carrier_id text, token uuid, attempts smallint, retries smallint, received_at timestamptz, stage text,
    candidate text, percent smallint, shadow boolean, sealed_key bytea, commitment bytea, headers jsonb, sealed bytea,
    normalized_by text, normalized bytea
)
    LANGUAGE plpgsql SET work_mem = '16MB' AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := statesvc.clock();
    v_token uuid := gen_random_uuid();
    v_margin constant interval := interval '10 seconds';
    v_deaths_max constant int := 5;
    v_lanes int;
    v_left int := p_limit;
    v_bytes_left bigint := p_bytes_max;
    v_share int;
    v_got int;
    v_bytes bigint;
    v_suspect record;
    v_marks jsonb;
    v_taken uuid[];
    v_ids uuid[] := '{}';
BEGIN
    -- A message whose worker died or froze: alone, so that a killer charges nobody else.
    LOOP
        SELECT q.message_id, q.attempts - q.retries AS deaths INTO v_suspect
        FROM statesvc.inbox q
        WHERE q.token IS NOT NULL AND q.available_at <= v_now
            AND (p_sweep OR q.available_at >= (SELECT l.low_water FROM statesvc.lane l WHERE l.carrier_id = ''))
            AND (p_stage = 'any' OR q.stage = p_stage)
            AND NOT statesvc.held(q.carrier_id)
        ORDER BY q.available_at LIMIT 1 FOR UPDATE SKIP LOCKED;
        EXIT WHEN NOT FOUND;
        IF v_suspect.deaths >= v_deaths_max THEN
            PERFORM statesvc.bury_locked(v_suspect.message_id, 'worker_died',
                format('%s attempts ended without a verdict: each time the worker died or its lease ran out', v_suspect.deaths));
            CONTINUE;
        END IF;
        UPDATE statesvc.inbox q SET token = v_token, worker = p_worker, available_at = v_now + p_lease, attempts = q.attempts + 1
        WHERE q.message_id = v_suspect.message_id;
        v_ids := ARRAY[v_suspect.message_id];
        v_left := 0;
        EXIT;
    END LOOP;

    IF v_left > 0 THEN
        SELECT count(*) INTO v_lanes FROM statesvc.lane l WHERE l.carrier_id <> '' AND NOT statesvc.held(l.carrier_id);
        v_share := greatest(1, p_limit / greatest(v_lanes, 1));
    END IF;
    WHILE v_left > 0 AND v_lanes > 0 LOOP
        WITH open_lane AS MATERIALIZED (
            SELECT l.carrier_id, CASE WHEN p_sweep THEN '-infinity' ELSE l.low_water END AS low_water
            FROM statesvc.lane l WHERE l.carrier_id <> '' AND NOT statesvc.held(l.carrier_id) ORDER BY random()
        ), pick AS MATERIALIZED (
            SELECT j.message_id, j.carrier_id, j.available_at,
                -- by turns, so that one carrier's large bodies do not take the bytes of all
                sum(j.body_bytes) OVER (ORDER BY j.turn, j.available_at, j.message_id) - j.body_bytes AS bytes_before, j.body_bytes
            FROM (
                SELECT q.*, row_number() OVER (PARTITION BY q.carrier_id ORDER BY q.available_at, q.message_id) AS turn
                FROM (SELECT q.* FROM open_lane l CROSS JOIN LATERAL (
                    SELECT i.message_id, i.carrier_id, i.available_at, i.body_bytes FROM statesvc.inbox i
                    WHERE i.carrier_id = l.carrier_id AND i.token IS NULL AND i.available_at >= l.low_water AND i.available_at <= v_now
                        AND (p_stage = 'any' OR i.stage = p_stage)
                    ORDER BY i.available_at, i.message_id LIMIT v_share FOR UPDATE SKIP LOCKED
                ) q LIMIT v_left) q
            ) j
        ), taken AS (
            -- = ANY(ARRAY(..)), not a join: the planner overestimates `pick` and would scan the whole inbox
            UPDATE statesvc.inbox q SET token = v_token, worker = p_worker, available_at = v_now + p_lease, attempts = q.attempts + 1
            WHERE q.message_id = ANY (ARRAY(
                SELECT p.message_id FROM pick p WHERE p.bytes_before + p.body_bytes <= v_bytes_left OR (p.bytes_before = 0 AND v_left = p_limit)))
            RETURNING q.message_id, q.body_bytes
        )
        SELECT (SELECT count(*) FROM taken), (SELECT coalesce(sum(t.body_bytes), 0) FROM taken t), ARRAY(SELECT t.message_id FROM taken t),
            coalesce(v_marks, (SELECT jsonb_object_agg(m.carrier_id, m.mark) FROM (
                SELECT l.carrier_id, least(v_now, min(p.available_at)) - v_margin AS mark
                FROM open_lane l LEFT JOIN pick p ON p.carrier_id = l.carrier_id GROUP BY l.carrier_id, l.low_water
                HAVING least(v_now, min(p.available_at)) - v_margin > l.low_water + v_margin
                    -- a full pick may not have reached this lane: what waits there is not known
                    AND (count(p.message_id) > 0 OR (SELECT count(*) FROM pick) < v_left)) m))
        INTO v_got, v_bytes, v_taken, v_marks;
        v_ids := v_ids || v_taken;
        v_left := v_left - v_got;
        v_bytes_left := v_bytes_left - v_bytes;
        EXIT WHEN v_got = 0 OR v_bytes_left <= 0 OR v_share >= p_limit;
        v_share := p_limit;
    END LOOP;

    -- Marks move at most every 10 s a lane, and never wait for another claim. A claim of one stage has not seen the others.
    UPDATE statesvc.lane l SET low_water = (v_marks ->> l.carrier_id)::timestamptz
    WHERE p_stage = 'any' AND l.carrier_id IN (
        SELECT s.carrier_id FROM statesvc.lane s
        WHERE v_marks ? s.carrier_id AND s.low_water < (v_marks ->> s.carrier_id)::timestamptz FOR UPDATE SKIP LOCKED);
    IF v_suspect IS NULL AND p_stage = 'any' THEN
        UPDATE statesvc.lane l SET low_water = v_now - v_margin
        WHERE l.carrier_id IN (SELECT s.carrier_id FROM statesvc.lane s
            WHERE s.carrier_id = '' AND s.low_water < v_now - 2 * v_margin FOR UPDATE SKIP LOCKED);
    END IF;

    RETURN QUERY
    SELECT q.message_id, q.carrier_id, q.token, q.attempts, q.retries, q.received_at, q.stage,
        r.candidate, coalesce(r.percent, 0::smallint), coalesce(r.shadow, false), q.sealed_key, b.commitment, b.headers, b.sealed,
        n.normalizer, n.sealed
    FROM statesvc.inbox q
    JOIN statesvc.body b ON b.message_id = q.message_id AND b.received_at = q.received_at
    LEFT JOIN statesvc.rollout r ON r.carrier_id = q.carrier_id
    LEFT JOIN statesvc.normalized n ON n.message_id = q.message_id
    WHERE q.message_id = ANY (v_ids)
    ORDER BY q.received_at, q.message_id;
END
$$;

-- Pushes the end of a lease out to `p_lease` from now. Returns how many messages the token still holds.
CREATE FUNCTION statesvc.extend(p_token uuid, p_lease interval) RETURNS int
    LANGUAGE plpgsql AS $$
DECLARE
    v_held int;
BEGIN
    UPDATE statesvc.inbox q SET available_at = statesvc.clock() + p_lease WHERE q.token = p_token;
    GET DIAGNOSTICS v_held = ROW_COUNT;
    RETURN v_held;
END
$$;

-- Gives messages back after a transient failure, available again after their delay. Returns how many the token still held.
CREATE FUNCTION statesvc.retry(p_token uuid, p_message_ids uuid[], p_delays interval[], p_errors text[]) RETURNS int
    LANGUAGE plpgsql AS $$
DECLARE
    v_held int;
BEGIN
    UPDATE statesvc.inbox q SET token = NULL, worker = NULL, available_at = statesvc.clock() + u.delay, retries = q.retries + 1, last_error = u.error
    FROM unnest(p_message_ids, p_delays, p_errors) AS u(message_id, delay, error)
    WHERE q.message_id = u.message_id AND q.token = p_token;
    GET DIAGNOSTICS v_held = ROW_COUNT;
    RETURN v_held;
END
$$;

-- Gives back everything that the token holds, untouched and uncharged (a worker that shuts down). Returns how many.
CREATE FUNCTION statesvc.release(p_token uuid) RETURNS int
    LANGUAGE plpgsql AS $$
DECLARE
    v_held int;
BEGIN
    UPDATE statesvc.inbox q SET token = NULL, worker = NULL, available_at = statesvc.clock(), attempts = q.attempts - 1 WHERE q.token = p_token;
    GET DIAGNOSTICS v_held = ROW_COUNT;
    RETURN v_held;
END
$$;

-- Moves messages to the dead letters, with the cause and a detail that holds nothing of the message. Returns how many.
CREATE FUNCTION statesvc.bury(p_token uuid, p_message_ids uuid[], p_causes text[], p_details text[]) RETURNS int
    LANGUAGE plpgsql AS $$
DECLARE
    v_item record;
    v_held int := 0;
BEGIN
    FOR v_item IN
        SELECT q.message_id, u.cause, u.detail FROM statesvc.inbox q
        JOIN unnest(p_message_ids, p_causes, p_details) AS u(message_id, cause, detail) ON u.message_id = q.message_id
        WHERE q.token = p_token ORDER BY q.message_id FOR UPDATE OF q
    LOOP
        PERFORM statesvc.bury_locked(v_item.message_id, v_item.cause, v_item.detail);
        v_held := v_held + 1;
    END LOOP;
    RETURN v_held;
END
$$;

-- A foreign worker's verdict: hands over what it read. `p_results`: a JSON array of
-- {"message_id": uuid, "normalizer": text, "events": base64 of the sealed canonical events}. Each message that the token
-- still holds becomes a normalized message of the same id, ready at once. Returns how many were taken.
CREATE FUNCTION statesvc.settle(p_token uuid, p_results jsonb) RETURNS int
    LANGUAGE plpgsql AS $$
DECLARE
    v_taken int;
BEGIN
    WITH result AS (
        SELECT (e ->> 'message_id')::uuid AS message_id, e ->> 'normalizer' AS normalizer, decode(e ->> 'events', 'base64') AS sealed
        FROM jsonb_array_elements(p_results) e
    ), mine AS (
        UPDATE statesvc.inbox q SET token = NULL, worker = NULL, available_at = statesvc.clock(), stage = 'normalized', attempts = 0, retries = 0
        FROM result r WHERE q.message_id = r.message_id AND q.token = p_token AND q.stage = 'raw'
        RETURNING q.message_id
    )
    INSERT INTO statesvc.normalized (message_id, normalizer, sealed)
    SELECT r.message_id, r.normalizer, r.sealed FROM result r JOIN mine m ON m.message_id = r.message_id;
    GET DIAGNOSTICS v_taken = ROW_COUNT;
    RETURN v_taken;
END
$$;

-- When the next message becomes available that is not available yet (backoff, ETA, end of a lease); NULL: none waits.
CREATE FUNCTION statesvc.next_due() RETURNS timestamptz
    LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := statesvc.clock();
BEGIN
    RETURN (
        SELECT min(d.due) FROM (
            SELECT s.available_at AS due FROM statesvc.lane l CROSS JOIN LATERAL (
                SELECT q.available_at FROM statesvc.inbox q
                WHERE q.carrier_id = l.carrier_id AND q.token IS NULL AND q.available_at > v_now
                ORDER BY q.available_at LIMIT 1) s
            WHERE l.carrier_id <> '' AND NOT statesvc.held(l.carrier_id)
            UNION ALL
            (SELECT q.available_at FROM statesvc.inbox q WHERE q.token IS NOT NULL AND q.available_at > v_now ORDER BY q.available_at LIMIT 1)
        ) d);
END
$$;
