-- The claim protocol: the functions through which any program in any language works on the inbox (docs/claim-protocol.md).
--
--                   put
--                    |
--                    v             claim                        appended by a Python worker
--               [ waiting ] ----------------> [ leased ] ---------------------------------------> [ settled ]
--                    ^                         |  |  ^
--                    |   settle, decline,      |  |  |   bury; retry after 20 retries
--                    +---- retry, release -----+  +--|------------------------------------------> [ dead letter ]
--                                                 |  |                                                 ^
--                                                 v  | claim, alone                                    |
--                                             [ suspect ] ------- claim, after 5 such attempts --------+
--
-- A leased message becomes suspect when its lease ends without a verdict; and when it is given back later, as long as it has such an
-- attempt behind it.
--
-- A message is a row of `inbox`, and its columns say which state it is in:
--   waiting   `token` is NULL. It can be claimed once `available_at` has come (at once; after a retry, when its delay is over).
--   leased    `token` and `worker` are set, and `available_at`, the end of the lease, has not come.
--   suspect   `token` is set, and either the lease has ended, or `worker` is NULL: the message is parked until `available_at`.
--   settled   The row is gone, and `message` has the verdict; the worker that appends does both in the transaction that appends.
--   dead letter   The row is gone, and `dead_letter` has the message's key. functions/replay.sql brings it back.
-- `stage` says what is left to do: `raw`, to be read; `declined`, to be read, but not by a foreign worker; `normalized`, to be appended.
--
-- Rules:
-- 1. A claim leases its messages under one fencing token. A later call with the token acts on those messages only that still
--    carry it; every function answers how many these were.
-- 2. Attempts are counted when a message is claimed, so that a message which kills its worker is charged although nobody lives to
--    report it. `attempts - retries` is the number of attempts that ended without a verdict.
-- 3. A message with such an attempt is claimed alone until it settles, and is buried after 5 of them: it charges no other message.
-- 4. Retries after transient failures have a budget of their own, 20; release, decline and postpone cost nothing.
-- 5. Claims look from each lane's low-water mark on. Under a pinned xmin, the dead index entries below it would otherwise be walked
--    again by every claim. A message whose ingest was slow may hide below its mark until the next sweep.
-- 6. Every attempt that did not settle is recorded in `message_attempt` by these functions, for every worker.
-- 7. Messages are locked before everything else (lock order: ARCHITECTURE.md).

-- Stores a group of messages and queues them; a byte-identical retry within 48 hours is counted and answered with the first message's
-- id. One round trip, whatever the size; the caller commits, then ACKs. Never notifies. A message that is put again under its own id is
-- a duplicate too: ingress spools what the database may have stored without an answer.
-- `p_etas`: not before this time; NULL or past: at once. `p_receipts_until`: a retry is recognised until then instead of for 48 hours.
-- `p_acknowledged`: times of the ACKs of messages from a spool, never taken as future, nor as older than a day, for which there are
-- partitions. Where such a message is a duplicate, `message_alias` leads from its id to the first message's.
CREATE FUNCTION statesvc.put(
    p_message_ids uuid[], p_carrier_ids text[], p_digests bytea[], p_sealed bytea[], p_sealed_keys bytea[],
    p_commitments bytea[], p_headers jsonb[], p_body_bytes int[],
    p_etas timestamptz[] DEFAULT NULL, p_receipts_until timestamptz[] DEFAULT NULL, p_acknowledged timestamptz[] DEFAULT NULL
) RETURNS TABLE (ordinal int, message_id uuid, duplicate boolean)
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := statesvc.clock();
BEGIN
    INSERT INTO statesvc.lane (carrier_id)
        SELECT DISTINCT c FROM unnest(p_carrier_ids) c
        WHERE NOT EXISTS (SELECT FROM statesvc.lane l WHERE l.carrier_id = c)
        ORDER BY c ON CONFLICT (carrier_id) DO NOTHING;
    RETURN QUERY
    WITH item AS (
        SELECT u.*, (row_number() OVER (PARTITION BY u.digest ORDER BY u.ordinal)) = 1 AS first,
            count(*) OVER (PARTITION BY u.digest) - 1 AS repeats,
            CASE WHEN u.acknowledged IS NULL THEN v_now
                ELSE greatest(least(u.acknowledged, v_now), v_now - interval '24 hours') END AS received_at
        FROM unnest(p_message_ids, p_carrier_ids, p_digests, p_sealed, p_sealed_keys, p_commitments, p_headers, p_body_bytes,
                p_etas, p_receipts_until, p_acknowledged)
            WITH ORDINALITY AS u(message_id, carrier_id, digest, sealed, sealed_key, commitment, headers, body_bytes, eta, receipt_until,
                acknowledged, ordinal)
    ), known AS (
        -- sorted, so that two groups with the same retries wait for each other instead of deadlocking
        INSERT INTO statesvc.receipt AS r (digest, message_id, received_at, retries, retained_until)
        SELECT i.digest, i.message_id, i.received_at, i.repeats, i.receipt_until
        FROM item i WHERE i.first ORDER BY i.digest
        ON CONFLICT (digest) DO UPDATE SET
            message_id = CASE WHEN statesvc.receipt_ended(r, excluded.received_at) THEN excluded.message_id ELSE r.message_id END,
            retries = CASE WHEN statesvc.receipt_ended(r, excluded.received_at) THEN excluded.retries ELSE r.retries + 1 + excluded.retries END,
            received_at = CASE WHEN statesvc.receipt_ended(r, excluded.received_at) THEN excluded.received_at ELSE r.received_at END,
            retained_until = CASE WHEN statesvc.receipt_ended(r, excluded.received_at) THEN excluded.retained_until ELSE r.retained_until END
        RETURNING r.digest, r.message_id, r.retries
    ), fresh AS (
        -- a known receipt counts at least one retry more than this group has, also that of a message which is put again
        SELECT i.* FROM item i JOIN known k ON k.digest = i.digest AND k.retries = i.repeats WHERE i.first
    ), stored AS (
        INSERT INTO statesvc.body (message_id, received_at, carrier_id, commitment, headers, sealed)
        SELECT f.message_id, f.received_at, f.carrier_id, f.commitment, f.headers, f.sealed FROM fresh f
    ), queued AS (
        INSERT INTO statesvc.inbox (message_id, received_at, available_at, eta, body_bytes, carrier_id, sealed_key)
        SELECT f.message_id, f.received_at, greatest(v_now, f.eta), CASE WHEN f.eta > v_now THEN f.eta END, f.body_bytes, f.carrier_id,
            f.sealed_key
        FROM fresh f
    ), discarded AS (
        INSERT INTO statesvc.message_alias (message_id, kept_id)
        SELECT i.message_id, k.message_id FROM item i JOIN known k ON k.digest = i.digest
        WHERE i.acknowledged IS NOT NULL AND i.message_id <> k.message_id
        ON CONFLICT (message_id) DO NOTHING
    )
    SELECT i.ordinal::int, k.message_id, NOT (i.first AND k.retries = i.repeats)
    FROM item i JOIN known k ON k.digest = i.digest ORDER BY i.ordinal;
END
$$;

-- Leases up to `p_limit` messages (and `p_bytes_max` of bodies, at least one) to `p_worker` for `p_lease`: bounds > choose > take > read.
--
-- First comes a suspect, alone; with `p_rescue_first` false only when no lane has anything, so that a worker can alternate. Else every
-- lane gets its share by weight, and what is left over goes by weight to those that have more. Rows are chosen without a lock, and
-- exactly the chosen ones are locked; where another claim was faster, it chooses again beyond them. Room that a burial makes for a
-- bounded carrier is given at once.
-- `p_stage`: 'raw' for a foreign worker that normalizes, 'any' for the workers that append. `p_sweep` ignores the low-water marks.
-- `p_report_burials`: what the claim buried is answered too, in rows of nothing but the message's id, its carrier and `buried_for`, the
-- cause. `complete`: nothing that is ready was left, so the next claim may wait for a wake-up; with `p_report_complete` an empty claim
-- says so too, in a row of nothing else.
-- `p_normalizer`: what this foreign worker reads as, `name@version`. Of a carrier with a foreign reading it gets what falls to it
-- (functions/foreign_readings.sql), without a name nothing. `p_carriers`: those that it reads; NULL: all. Stage 'trial': see there.
--
-- Its plans are generic, because planning for each call would cost more than the claim itself, and owe nothing to statistics: a queue
-- is empty when it is analyzed, and full a second later. Planned for a few rows, a claim read and sorted a lane's whole backlog (150 ms
-- for 25,000 messages) until the next analyze. The right plan walks an index in its order and stops; the settings leave no other, and
-- hold for the functions that it calls.
CREATE FUNCTION statesvc.claim(
    p_worker text, p_limit int, p_lease interval, p_stage text DEFAULT 'raw', p_bytes_max bigint DEFAULT 4194304,
    p_sweep boolean DEFAULT false, p_rescue_first boolean DEFAULT true, p_report_burials boolean DEFAULT false,
    p_report_complete boolean DEFAULT false, p_normalizer text DEFAULT NULL, p_carriers text[] DEFAULT NULL
) RETURNS TABLE (
    message_id uuid, carrier_id text, token uuid, attempts smallint, retries smallint, received_at timestamptz, stage text,
    candidate text, percent smallint, shadow boolean, sealed_key bytea, commitment bytea, headers jsonb, sealed bytea,
    normalized_by text, normalized bytea, postponed smallint, rescued_from text, buried_for text,
    complete boolean, stable text, in_share boolean, fallback_for text
)
    LANGUAGE plpgsql SET work_mem = '16MB' SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_incremental_sort = off AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := statesvc.clock();
    v_token uuid := gen_random_uuid();
    v_worker text := coalesce(p_worker, 'unnamed');  -- a row without a worker would count as parked
    v_held text[];
    v_is_shared boolean;
    -- aligned: the carriers that this worker shares, its buckets of each, and until when what is ready is overdue
    v_split text[];
    v_firsts int[];
    v_lasts int[];
    v_overdue timestamptz[];
    v_bounds record;
    v_lease_mark timestamptz;
    v_rescue record;
    v_ready record;
    v_taken record;
    v_complete boolean;
    v_buried uuid[] := '{}';
    v_buried_carriers text[] := '{}';
    v_rescued_from text;
    v_moving text[];
    v_marks timestamptz[];
    v_ids uuid[];
    v_since timestamptz;
    v_until timestamptz;
    v_returned int;
    v_missing record;
BEGIN
    IF p_stage = 'any' AND NOT p_sweep AND p_limit <= 64 AND p_carriers IS NULL THEN
        v_ids := statesvc.choose_all(p_limit, p_bytes_max, v_now);
    END IF;
    v_complete := v_ids IS NOT NULL;
    IF v_complete THEN
        v_taken := statesvc.take(v_token, v_worker, p_normalizer, p_lease, v_now, v_ids);
        v_ids := v_taken.message_ids;
        v_since := v_taken.since;
        v_until := v_taken.until;
    ELSE
        SELECT coalesce(array_agg(r.carrier_id) FILTER (WHERE r.hold), '{}'),
            coalesce(bool_or(r.stable IS NOT NULL OR r.percent > 0 OR r.shadow), false)
        INTO v_held, v_is_shared FROM statesvc.rollout r;
        IF p_normalizer IS NOT NULL OR (v_is_shared AND p_stage = 'any') THEN
            PERFORM statesvc.note_reader(p_stage, coalesce(p_normalizer, 'statesvc'), p_carriers, v_now);
        END IF;
        IF '*' = ANY (v_held) THEN
            RETURN;
        END IF;
        IF p_stage = 'trial' THEN
            RETURN QUERY
            SELECT t.message_id, t.carrier_id, v_token, t.attempts, 0::smallint, t.received_at, 'trial'::text, p_normalizer, 0::smallint,
                true, t.sealed_key, t.commitment, t.headers, t.sealed, NULL::text, NULL::bytea, 0::smallint, NULL::text, NULL::text, false,
                NULL::text, false, NULL::text
            FROM statesvc.claim_trials(v_token, p_normalizer, p_carriers, v_held, p_limit, p_lease, p_bytes_max, v_now) t;
            RETURN;
        END IF;
        IF p_carriers IS NOT NULL THEN
            v_held := v_held || ARRAY(SELECT l.carrier_id FROM statesvc.lane l WHERE l.carrier_id <> '' AND l.carrier_id <> ALL (p_carriers));
        END IF;
        IF v_is_shared THEN
            SELECT v_held || r.without, r.split, r.firsts, r.lasts, r.overdue INTO v_held, v_split, v_firsts, v_lasts, v_overdue
            FROM statesvc.readings(p_stage, p_normalizer, v_now) r;
        END IF;
        SELECT CASE WHEN p_stage = 'raw' THEN l.raw_low_water ELSE l.low_water END INTO v_lease_mark
        FROM statesvc.lane l WHERE l.carrier_id = '';

        <<bounded>> LOOP
            v_bounds := statesvc.claim_bounds(v_held);
            FOR v_turn IN 1..2 LOOP
                IF p_rescue_first = (v_turn = 1) THEN
                    v_rescue := statesvc.claim_suspect(v_token, v_worker, p_normalizer, p_lease, p_stage, v_now,
                        CASE WHEN p_sweep THEN '-infinity' ELSE v_lease_mark END, v_held, v_bounds.full_carriers,
                        v_split, v_firsts, v_lasts, v_overdue);
                    v_ids := array_remove(ARRAY[v_rescue.message_id], NULL);
                    v_since := v_rescue.received_at;
                    v_until := v_rescue.received_at;
                    v_rescued_from := v_rescue.rescued_from;
                    v_buried := v_buried || v_rescue.buried;
                    v_buried_carriers := v_buried_carriers || v_rescue.buried_carriers;
                    CONTINUE bounded WHEN v_ids = '{}' AND v_rescue.buried_carriers && v_bounds.bounded_carriers;
                ELSE
                    v_ready := statesvc.claim_ready(v_token, v_worker, p_normalizer, p_limit, p_lease, p_stage, p_bytes_max, p_sweep,
                        v_now, v_held || v_bounds.full_carriers, v_bounds.open_carriers, v_bounds.rooms,
                        v_split, v_firsts, v_lasts, v_overdue);
                    v_ids := v_ready.message_ids;
                    v_since := v_ready.since;
                    v_until := v_ready.until;
                    v_moving := v_ready.moving;
                    v_marks := v_ready.marks;
                END IF;
                EXIT bounded WHEN v_ids <> '{}';
            END LOOP;
            EXIT;
        END LOOP;
        PERFORM statesvc.move_marks(p_stage, p_sweep, v_now, v_lease_mark, v_moving, v_marks);
        IF v_ids <> '{}' AND num_nonnulls(VARIADIC v_overdue) > 0 THEN
            PERFORM statesvc.note_fallbacks(v_ids, v_now);
        END IF;
    END IF;

    IF v_ids <> '{}' THEN
        RETURN QUERY
        SELECT r.message_id, r.carrier_id, r.token, r.attempts, r.retries, r.received_at, r.stage, r.candidate, r.percent, r.shadow,
            r.sealed_key, r.commitment, r.headers, r.sealed, r.normalized_by, r.normalized, r.postponed, v_rescued_from, NULL::text,
            v_complete, r.stable, r.in_share, r.fallback_for
        FROM statesvc.read_claimed(v_ids, v_since, v_until) r;
        GET DIAGNOSTICS v_returned = ROW_COUNT;
    END IF;
    IF v_returned < cardinality(v_ids) THEN
        -- never silently: an operator finds it among the dead letters
        FOR v_missing IN
            SELECT q.message_id, q.carrier_id FROM statesvc.inbox q
            WHERE q.message_id = ANY (v_ids)
                AND NOT EXISTS (SELECT FROM statesvc.body b WHERE b.message_id = q.message_id AND b.received_at = q.received_at)
                AND NOT EXISTS (SELECT FROM statesvc.body_retained k WHERE k.message_id = q.message_id)
        LOOP
            PERFORM statesvc.bury_locked(v_missing.message_id, 'body_missing', 'neither the bodies of its day nor the retained ones hold it');
            v_buried := v_buried || v_missing.message_id;
            v_buried_carriers := v_buried_carriers || v_missing.carrier_id;
        END LOOP;
    END IF;
    IF p_report_burials AND v_buried <> '{}' THEN
        RETURN QUERY
        SELECT b.message_id, b.carrier_id, NULL::uuid, NULL::smallint, NULL::smallint, NULL::timestamptz, NULL::text,
            NULL::text, NULL::smallint, NULL::boolean, NULL::bytea, NULL::bytea, NULL::jsonb, NULL::bytea, NULL::text, NULL::bytea,
            NULL::smallint, NULL::text, CASE WHEN b.message_id = ANY (v_ids) THEN 'body_missing' ELSE 'worker_died' END, v_complete,
            NULL::text, NULL::boolean, NULL::text
        FROM unnest(v_buried, v_buried_carriers) AS b(message_id, carrier_id);
    ELSIF p_report_complete AND v_complete AND v_ids = '{}' THEN
        complete := true;
        RETURN NEXT;
    END IF;
END
$$;

-- Moves the end of a lease to `p_lease` from now. Returns how many messages the token still holds.
CREATE FUNCTION statesvc.extend(p_token uuid, p_lease interval) RETURNS int
    LANGUAGE plpgsql AS $$
DECLARE
    v_held int;
BEGIN
    UPDATE statesvc.inbox q SET available_at = statesvc.clock() + p_lease WHERE q.token = p_token;
    GET DIAGNOSTICS v_held = ROW_COUNT;
    RETURN CASE WHEN v_held = 0 THEN statesvc.extend_trials(p_token, p_lease) ELSE v_held END;
END
$$;

-- A foreign worker's verdict "read": hands over what it read. `p_results`: a JSON array of
-- {"message_id": uuid, "normalizer": text, "events": base64 of the sealed canonical events}. Each message that the token still holds
-- becomes a normalized message of the same id, ready at once. Returns how many. What was claimed as one normalizer is not taken from
-- another: that is an error of the worker, and nothing is settled.
CREATE FUNCTION statesvc.settle(p_token uuid, p_results jsonb) RETURNS int
    LANGUAGE plpgsql AS $$
DECLARE
    v_taken int;
    v_other record;
BEGIN
    SELECT q.message_id, q.normalizer AS claimed_as, e ->> 'normalizer' AS settled_as INTO v_other
    FROM jsonb_array_elements(p_results) e JOIN statesvc.inbox q ON q.message_id = (e ->> 'message_id')::uuid
    WHERE q.token = p_token AND q.normalizer <> e ->> 'normalizer' LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'message % was claimed as %, and is settled as %', v_other.message_id, v_other.claimed_as, v_other.settled_as
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    WITH result AS (
        SELECT (e ->> 'message_id')::uuid AS message_id, e ->> 'normalizer' AS normalizer, decode(e ->> 'events', 'base64') AS sealed
        FROM jsonb_array_elements(p_results) e
    ), mine AS (
        UPDATE statesvc.inbox q
        SET token = NULL, worker = NULL, leased_at = NULL, available_at = statesvc.clock(), stage = 'normalized', attempts = 0, retries = 0
        FROM result r WHERE q.message_id = r.message_id AND q.token = p_token AND q.stage = 'raw'
        RETURNING q.message_id
    )
    INSERT INTO statesvc.normalized (message_id, normalizer, sealed)
    SELECT r.message_id, r.normalizer, r.sealed FROM result r JOIN mine m ON m.message_id = r.message_id;
    GET DIAGNOSTICS v_taken = ROW_COUNT;
    RETURN CASE WHEN v_taken = 0 THEN statesvc.settle_trials(p_token, p_results) ELSE v_taken END;
END
$$;

-- A foreign worker's verdict "not mine" on raw messages: they are available at once to the workers that read everything, and to no
-- foreign worker again. A worker may be sure of some formats of a carrier and not of others. Uncharged. Returns how many the token still
-- held.
CREATE FUNCTION statesvc.decline(p_token uuid, p_message_ids uuid[]) RETURNS int
    LANGUAGE plpgsql AS $$
DECLARE
    v_held int;
BEGIN
    UPDATE statesvc.inbox q
    SET token = statesvc.waiting_token(q.attempts, q.retries), worker = NULL, leased_at = NULL, available_at = statesvc.clock(),
        attempts = q.attempts - 1, stage = 'declined'
    WHERE q.message_id = ANY (p_message_ids) AND q.token = p_token AND q.stage = 'raw';
    GET DIAGNOSTICS v_held = ROW_COUNT;
    RETURN CASE WHEN v_held = 0 THEN statesvc.end_trials(p_token, p_message_ids, 'declined') ELSE v_held END;
END
$$;

-- Gives messages back after a transient failure, available again after their delay; one that was given back 20 times becomes a
-- dead letter instead. Returns how many the token still held.
CREATE FUNCTION statesvc.retry(
    p_token uuid, p_message_ids uuid[], p_delays interval[], p_errors text[], p_normalizers text[] DEFAULT NULL
) RETURNS int
    LANGUAGE plpgsql AS $$
DECLARE
    v_retries_max constant int := 20;
    v_now timestamptz := statesvc.clock();
    v_item record;
    v_held int := 0;
BEGIN
    FOR v_item IN
        SELECT q.message_id, q.retries, u.delay, u.error, u.normalizer FROM statesvc.inbox q
        JOIN unnest(p_message_ids, p_delays, p_errors, p_normalizers) AS u(message_id, delay, error, normalizer) ON u.message_id = q.message_id
        WHERE q.token = p_token ORDER BY q.message_id FOR UPDATE OF q
    LOOP
        v_held := v_held + 1;
        IF v_item.retries >= v_retries_max THEN
            PERFORM statesvc.note_attempt(v_item.message_id, 'buried', v_now, 'attempts_exhausted', v_item.normalizer);
            PERFORM statesvc.bury_locked(v_item.message_id, 'attempts_exhausted',
                format('given back %s times, the last time for %s', v_item.retries, left(v_item.error, 200)), v_item.normalizer);
            CONTINUE;
        END IF;
        PERFORM statesvc.note_attempt(v_item.message_id, 'retried', v_now, v_item.error, v_item.normalizer);
        UPDATE statesvc.inbox q
        SET token = statesvc.waiting_token(q.attempts, q.retries), worker = NULL, leased_at = NULL, available_at = v_now + v_item.delay,
            retries = q.retries + 1, last_error = v_item.error
        WHERE q.message_id = v_item.message_id;
    END LOOP;
    RETURN CASE WHEN v_held = 0 THEN statesvc.end_trials(p_token, p_message_ids, NULL, p_delays[1]) ELSE v_held END;
END
$$;

-- Gives messages back uncharged, because a shipment that they name is locked by another transaction: available again at the next multiple
-- of a short while: of 100 ms, doubled at every second time up to 6.4 s. Returns how many the token still held.
CREATE FUNCTION statesvc.postpone(p_token uuid, p_message_ids uuid[]) RETURNS int
    LANGUAGE plpgsql AS $$
DECLARE
    v_held int;
BEGIN
    UPDATE statesvc.inbox q
    SET token = statesvc.waiting_token(q.attempts, q.retries), worker = NULL, leased_at = NULL, attempts = q.attempts - 1,
        postponed = least(q.postponed + 1, 1000),
        -- in step, so that those which wait for one lock are claimed together, and appended by one transaction
        available_at = d.delay + date_bin(d.delay, statesvc.clock(), timestamptz 'epoch')
    FROM (SELECT n, interval '100 ms' * 2 ^ n AS delay FROM generate_series(0, 6) AS n) d
    WHERE d.n = least(q.postponed / 2, 6) AND q.message_id = ANY (p_message_ids) AND q.token = p_token;
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
    UPDATE statesvc.inbox q
    SET token = statesvc.waiting_token(q.attempts, q.retries), worker = NULL, leased_at = NULL, available_at = statesvc.clock(),
        attempts = q.attempts - 1
    WHERE q.token = p_token;
    GET DIAGNOSTICS v_held = ROW_COUNT;
    RETURN CASE WHEN v_held = 0 THEN statesvc.end_trials(p_token, NULL, NULL) ELSE v_held END;
END
$$;

-- Moves messages to the dead letters, with the cause and a detail that holds nothing of the message. Returns how many the token still
-- held.
CREATE FUNCTION statesvc.bury(
    p_token uuid, p_message_ids uuid[], p_causes text[], p_details text[], p_normalizers text[] DEFAULT NULL
) RETURNS int
    LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := statesvc.clock();
    v_item record;
    v_held int := 0;
BEGIN
    FOR v_item IN
        SELECT q.message_id, u.cause, u.detail, u.normalizer FROM statesvc.inbox q
        JOIN unnest(p_message_ids, p_causes, p_details, p_normalizers) AS u(message_id, cause, detail, normalizer)
            ON u.message_id = q.message_id
        WHERE q.token = p_token ORDER BY q.message_id FOR UPDATE OF q
    LOOP
        PERFORM statesvc.note_attempt(v_item.message_id, 'buried', v_now, v_item.cause, v_item.normalizer);
        PERFORM statesvc.bury_locked(v_item.message_id, v_item.cause, v_item.detail, v_item.normalizer);
        v_held := v_held + 1;
    END LOOP;
    RETURN CASE WHEN v_held = 0 THEN statesvc.end_trials(p_token, p_message_ids, 'declined') ELSE v_held END;
END
$$;

-- When it is worth claiming again: when the next message becomes available that is not available yet (backoff, ETA, end of a lease), or
-- when one that is becomes overdue, and in a second at the latest while a carrier's bound keeps back what is ready. NULL: nothing waits.
CREATE FUNCTION statesvc.next_due() RETURNS timestamptz
    LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_incremental_sort = off AS $$
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
            UNION ALL
            SELECT greatest(s.available_at + make_interval(secs => r.fallback_seconds), v_now + interval '1 second')
            FROM statesvc.rollout r JOIN statesvc.lane l ON l.carrier_id = r.carrier_id
            CROSS JOIN LATERAL (
                (SELECT q.available_at FROM statesvc.inbox q
                WHERE q.carrier_id = r.carrier_id AND q.token IS NULL AND q.available_at >= l.low_water AND q.available_at <= v_now
                ORDER BY q.available_at LIMIT 1)
                UNION ALL
                (SELECT q.available_at FROM statesvc.inbox q
                WHERE q.carrier_id = r.carrier_id AND q.token IS NOT NULL AND q.available_at <= v_now ORDER BY q.available_at LIMIT 1)) s
            WHERE (r.stable IS NOT NULL OR strpos(r.candidate, '@') > 0) AND NOT statesvc.held(r.carrier_id)
            UNION ALL
            SELECT v_now + interval '1 second' WHERE statesvc.throttled()
        ) d);
END
$$;

-- Is something ready that its carrier's bound keeps from being claimed? A worker that then ends a batch claims again at once.
CREATE FUNCTION statesvc.throttled() RETURNS boolean
    LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_incremental_sort = off AS $$
DECLARE
    v_now timestamptz := statesvc.clock();
BEGIN
    RETURN EXISTS (
        SELECT FROM statesvc.carrier_quota a JOIN statesvc.lane l ON l.carrier_id = a.carrier_id
        WHERE a.in_flight_max IS NOT NULL AND NOT statesvc.held(a.carrier_id) AND EXISTS (
            SELECT FROM statesvc.inbox q
            WHERE q.carrier_id = a.carrier_id AND q.token IS NULL AND q.available_at >= l.low_water AND q.available_at <= v_now));
END
$$;

-- Locks those of the messages that the token still holds, for the rest of the transaction that appends, and returns them. From then on
-- that transaction waits `p_lock_milliseconds` for any lock. Its statements are planned once, not anew for each batch, which cost a
-- batch of few messages more than their work; and as tables grow faster than they are analyzed, no such plan may read one whole.
CREATE FUNCTION statesvc.hold_leased(p_token uuid, p_message_ids uuid[], p_lock_milliseconds int) RETURNS SETOF uuid
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('lock_timeout', p_lock_milliseconds::text, true), set_config('plan_cache_mode', 'force_generic_plan', true),
        set_config('enable_seqscan', 'off', true);
    RETURN QUERY SELECT q.message_id FROM statesvc.inbox q
        WHERE q.token = p_token AND q.message_id = ANY (p_message_ids) ORDER BY q.message_id FOR UPDATE;
END
$$;

-- What follows is internal: the parts of the functions above, about in the order in which a claim takes them.

-- Is this receipt no longer a reason to take a message for a retry?
CREATE FUNCTION statesvc.receipt_ended(r statesvc.receipt, p_now timestamptz) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN coalesce(r.retained_until, r.received_at + interval '48 hours') < p_now;

-- All that is ready, where a small claim may take all of it: nobody has to share. NULL where it may not: more is ready, a suspect comes
-- first, a carrier is held or bounded or has a foreign reading, or the marks are to move. The load of a day mostly comes in such claims.
CREATE FUNCTION statesvc.choose_all(p_limit int, p_bytes_max bigint, p_now timestamptz) RETURNS uuid[]
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_lease_mark timestamptz;
    v_chosen record;
BEGIN
    SELECT l.low_water INTO v_lease_mark FROM statesvc.lane l
    WHERE l.carrier_id = '' AND l.low_water >= p_now - statesvc.mark_margin() - interval '1 second';
    IF v_lease_mark IS NULL
        OR EXISTS (SELECT FROM statesvc.inbox q WHERE q.token IS NOT NULL AND q.available_at >= v_lease_mark AND q.available_at <= p_now)
        OR EXISTS (SELECT FROM statesvc.rollout r WHERE r.hold OR r.stable IS NOT NULL OR (r.percent > 0 AND strpos(r.candidate, '@') > 0))
        OR EXISTS (SELECT FROM statesvc.carrier_quota a WHERE a.in_flight_max IS NOT NULL) THEN
        RETURN NULL;
    END IF;
    SELECT array_agg(r.message_id) AS message_ids, count(*) AS messages, sum(r.body_bytes) AS bytes INTO v_chosen
    FROM statesvc.lane l CROSS JOIN LATERAL (
        SELECT i.message_id, i.body_bytes FROM statesvc.inbox i
        WHERE i.carrier_id = l.carrier_id AND i.token IS NULL AND i.available_at >= l.low_water AND i.available_at <= p_now
        ORDER BY i.available_at, i.message_id LIMIT p_limit + 1
    ) r
    WHERE l.carrier_id <> '';
    IF v_chosen.messages > p_limit OR v_chosen.bytes > p_bytes_max THEN
        RETURN NULL;
    END IF;
    RETURN coalesce(v_chosen.message_ids, '{}');
END
$$;

-- Is this carrier's kill switch, or the one of all, on?
CREATE FUNCTION statesvc.held(p_carrier_id text) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN EXISTS (SELECT FROM statesvc.rollout r WHERE r.carrier_id IN (p_carrier_id, '*') AND r.hold);

-- Those of the carriers whose messages in flight this transaction may count, and nobody else until it ends. Never waits: a claim that
-- does not get a bounded carrier leaves it to the claim that did.
CREATE FUNCTION statesvc.lock_lanes(p_carrier_ids text[]) RETURNS text[]
    LANGUAGE sql VOLATILE
    RETURN ARRAY(SELECT c FROM unnest(p_carrier_ids) c WHERE pg_try_advisory_xact_lock(hashtextextended('statesvc.lane ' || c, 0)));

-- Which carriers are bounded in flight, which of them are open to this claim, with room for how many messages, and which are full. A
-- bounded carrier's lane is locked until the claim commits, so that two claims never count the same room.
CREATE FUNCTION statesvc.claim_bounds(
    p_held text[], OUT bounded_carriers text[], OUT open_carriers text[], OUT rooms int[], OUT full_carriers text[]
)
    LANGUAGE plpgsql AS $$
DECLARE
    v_since timestamptz;
BEGIN
    open_carriers := '{}';
    rooms := '{}';
    full_carriers := '{}';
    SELECT array_agg(a.carrier_id) INTO bounded_carriers
    FROM statesvc.carrier_quota a WHERE a.in_flight_max IS NOT NULL AND a.carrier_id <> ALL (p_held);
    IF bounded_carriers IS NULL THEN
        RETURN;
    END IF;
    open_carriers := statesvc.lock_lanes(bounded_carriers);
    -- no lease ends below the mark of all
    SELECT l.low_water INTO v_since FROM statesvc.lane l WHERE l.carrier_id = '';
    -- a statement of its own, so that its snapshot is younger than the locks
    WITH in_flight AS MATERIALIZED (
        SELECT q.carrier_id, count(*)::int AS messages FROM statesvc.inbox q
        WHERE q.token IS NOT NULL AND q.worker IS NOT NULL AND q.available_at >= v_since AND q.carrier_id = ANY (open_carriers)
        GROUP BY q.carrier_id
    )
    SELECT coalesce(array_agg(a.carrier_id), '{}'), coalesce(array_agg(a.in_flight_max - coalesce(f.messages, 0)), '{}')
    INTO open_carriers, rooms
    FROM statesvc.carrier_quota a LEFT JOIN in_flight f ON f.carrier_id = a.carrier_id
    WHERE a.carrier_id = ANY (open_carriers) AND a.in_flight_max > coalesce(f.messages, 0);
    full_carriers := ARRAY(SELECT b FROM unnest(bounded_carriers) b WHERE b <> ALL (open_carriers));
END
$$;

-- Leases to `p_worker` the suspect that has waited longest; alone, so that a message which kills its worker charges nobody else. On its
-- way it buries those that did so 5 times. `p_full`: carriers that may not have another message in flight; a lease that is taken over
-- adds none. `p_split` and what is aligned to it: see `readings`. `message_id` NULL: there is none. `buried`: what it buried, and of which
-- carriers.
CREATE FUNCTION statesvc.claim_suspect(
    p_token uuid, p_worker text, p_normalizer text, p_lease interval, p_stage text, p_now timestamptz, p_from timestamptz, p_held text[],
    p_full text[], p_split text[], p_firsts int[], p_lasts int[], p_overdue timestamptz[],
    OUT message_id uuid, OUT received_at timestamptz, OUT rescued_from text, OUT buried uuid[], OUT buried_carriers text[]
)
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_deaths_max constant int := 5;
    v_row record;
BEGIN
    buried := '{}';
    buried_carriers := '{}';
    LOOP
        SELECT q.message_id, q.received_at, q.carrier_id, q.worker, q.available_at, q.attempts - q.retries AS deaths INTO v_row
        FROM statesvc.inbox q
        WHERE q.token IS NOT NULL AND q.available_at >= p_from AND q.available_at <= p_now
            AND (p_stage = 'any' OR q.stage = p_stage)
            AND q.carrier_id <> ALL (p_held) AND (q.worker IS NOT NULL OR q.carrier_id <> ALL (p_full))
            AND (p_split IS NULL OR q.stage <> 'raw' OR q.carrier_id <> ALL (p_split) OR EXISTS (
                SELECT FROM unnest(p_split, p_firsts, p_lasts, p_overdue) AS s(carrier_id, first, last, overdue)
                WHERE s.carrier_id = q.carrier_id AND (q.available_at <= s.overdue
                    OR statesvc.bucket(q.message_id, q.carrier_id, q.stage) BETWEEN s.first AND s.last)))
        ORDER BY q.available_at LIMIT 1 FOR UPDATE SKIP LOCKED;
        EXIT WHEN NOT FOUND;
        IF v_row.worker IS NOT NULL THEN
            PERFORM statesvc.note_attempt(v_row.message_id, 'lease_ended', v_row.available_at);
        END IF;
        IF v_row.deaths >= v_deaths_max THEN
            PERFORM statesvc.bury_locked(v_row.message_id, 'worker_died',
                format('%s attempts ended without a verdict: each time the worker died or its lease ran out', v_row.deaths));
            buried := buried || v_row.message_id;
            buried_carriers := buried_carriers || v_row.carrier_id;
            CONTINUE;
        END IF;
        UPDATE statesvc.inbox q
        SET token = p_token, worker = p_worker, normalizer = p_normalizer, leased_at = p_now, available_at = p_now + p_lease,
            attempts = q.attempts + 1
        WHERE q.message_id = v_row.message_id;
        message_id := v_row.message_id;
        received_at := v_row.received_at;
        rescued_from := v_row.worker;
        RETURN;
    END LOOP;
END
$$;

-- Leases what is ready in the lanes, but for those of `p_without`: choose and take, until the limit is reached or no lane has more.
-- `p_open`, `p_rooms`: bounded carriers, and how many more messages each may have in flight. `p_split` and what is aligned to it: see
-- `readings`. `since`, `until`: the first and the last `received_at`. `moving`, `marks`: new low-water marks.
CREATE FUNCTION statesvc.claim_ready(
    p_token uuid, p_worker text, p_normalizer text, p_limit int, p_lease interval, p_stage text, p_bytes_max bigint, p_sweep boolean,
    p_now timestamptz, p_without text[], p_open text[], p_rooms int[],
    p_split text[], p_firsts int[], p_lasts int[], p_overdue timestamptz[], OUT message_ids uuid[], OUT since timestamptz, OUT until timestamptz,
    OUT moving text[], OUT marks timestamptz[]
)
    LANGUAGE plpgsql AS $$
DECLARE
    -- the lanes that may have more, aligned: from where to choose, their marks, weights and rooms; of split ones the buckets
    v_lanes text[];
    v_starts timestamptz[];
    v_low_waters timestamptz[];
    v_weights float8[];
    v_rooms int[];
    v_firsts int[];
    v_lasts int[];
    v_overdue timestamptz[];
    v_left int := p_limit;
    v_bytes_left bigint := p_bytes_max;
    v_chosen record;
    v_taken record;
    v_complete boolean;
    v_busy uuid[] := '{}';
    v_is_first boolean := true;
BEGIN
    message_ids := '{}';
    SELECT array_agg(l.carrier_id), array_agg(CASE WHEN p_sweep THEN '-infinity' ELSE l.mark END), array_agg(l.mark),
        array_agg(l.weight), array_agg(l.room), array_agg(l.first), array_agg(l.last), array_agg(l.overdue)
    INTO v_lanes, v_starts, v_low_waters, v_weights, v_rooms, v_firsts, v_lasts, v_overdue
    FROM (
        SELECT l.carrier_id, CASE WHEN p_stage = 'raw' THEN l.raw_low_water ELSE l.low_water END AS mark,
            coalesce(a.weight, 1) AS weight, o.room, s.first, s.last, s.overdue
        FROM statesvc.lane l
        LEFT JOIN statesvc.carrier_quota a ON a.carrier_id = l.carrier_id
        LEFT JOIN unnest(p_open, p_rooms) AS o(carrier_id, room) ON o.carrier_id = l.carrier_id
        LEFT JOIN unnest(p_split, p_firsts, p_lasts, p_overdue) AS s(carrier_id, first, last, overdue) ON s.carrier_id = l.carrier_id
        WHERE l.carrier_id <> '' AND l.carrier_id <> ALL (p_without)
    ) l;
    WHILE v_left > 0 AND v_bytes_left > 0 AND v_lanes IS NOT NULL LOOP
        v_chosen := statesvc.choose(
            v_lanes, v_starts, v_low_waters, v_weights, v_rooms, v_firsts, v_lasts, v_overdue, p_stage, p_sweep, p_now, v_left,
            v_bytes_left, message_ids = '{}', v_busy);
        IF v_is_first THEN
            v_is_first := false;
            moving := v_chosen.moving;
            marks := v_chosen.marks;
        END IF;
        EXIT WHEN v_chosen.message_ids = '{}';
        v_taken := statesvc.take(p_token, p_worker, p_normalizer, p_lease, p_now, v_chosen.message_ids);
        message_ids := message_ids || v_taken.message_ids;
        since := least(since, v_taken.since);
        until := greatest(until, v_taken.until);
        v_left := v_left - cardinality(v_taken.message_ids);
        v_bytes_left := v_bytes_left - v_taken.bytes;
        -- the bound in bytes cut the choice: nothing more fits
        EXIT WHEN cardinality(v_chosen.message_ids) < v_chosen.seen;
        IF cardinality(v_taken.message_ids) < cardinality(v_chosen.message_ids) THEN
            v_busy := v_busy || ARRAY(SELECT c FROM unnest(v_chosen.message_ids) c EXCEPT SELECT t FROM unnest(v_taken.message_ids) t);
        END IF;
        v_lanes := v_chosen.lanes;
        v_starts := v_chosen.starts;
        v_low_waters := v_chosen.low_waters;
        v_weights := v_chosen.weights;
        v_rooms := v_chosen.rooms;
        v_firsts := v_chosen.firsts;
        v_lasts := v_chosen.lasts;
        v_overdue := v_chosen.overdue;
    END LOOP;
END
$$;

-- Chooses up to `p_limit` ready messages, without a lock: every lane gets its share by weight. `seen`: how many there were before the
-- bound in bytes cut them. `lanes` and what is aligned with it: those that gave their whole share and may have more.
-- `moving`, `marks`: the lanes whose low-water mark should move, and where to. Under a pinned xmin each claim walks what died above the
-- marks, so they follow closely; but every move costs a dead row per carrier, which each claim scans.
-- `p_firsts`, `p_lasts`, `p_overdue`: of a lane that this worker shares, its buckets. Of each it takes the oldest, so that it never walks
-- what is another's; that lane's mark stays below whatever is ready in it, whoever's it is.
CREATE FUNCTION statesvc.choose(
    p_lanes text[], p_starts timestamptz[], p_low_waters timestamptz[], p_weights float8[], p_rooms int[],
    p_firsts int[], p_lasts int[], p_overdue timestamptz[],
    p_stage text, p_sweep boolean, p_now timestamptz, p_limit int, p_bytes_max bigint, p_at_least_one boolean, p_busy uuid[],
    OUT message_ids uuid[], OUT seen int, OUT lanes text[], OUT starts timestamptz[], OUT low_waters timestamptz[], OUT weights float8[],
    OUT rooms int[], OUT firsts int[], OUT lasts int[], OUT overdue timestamptz[], OUT moving text[], OUT marks timestamptz[]
)
    LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    WITH asked AS (
        SELECT a.*, least(greatest(1, floor(p_limit * a.weight / sum(a.weight) OVER ()))::int, a.room) AS share,
            -- of each bucket somewhat more than its part of the share
            least(p_limit, 3 + 2 * p_limit / greatest(1, CASE WHEN a.overdue IS NULL THEN a.last - a.first + 1 ELSE 100 END)) AS of_each
        FROM unnest(p_lanes, p_starts, p_low_waters, p_weights, p_rooms, p_firsts, p_lasts, p_overdue)
            AS a(carrier_id, start, low_water, weight, room, first, last, overdue)
    ), searched AS MATERIALIZED (
        SELECT a.*, f.found, f.bytes, f.messages, f.last_at, m.mark, random() AS phase,
            (f.messages = a.share OR f.messages >= a.of_each) AND (a.room IS NULL OR a.room > a.share) AS has_more,
            -- at most every 3 seconds a lane; down only by a sweep, which saw what lies below
            m.mark > a.low_water + interval '3 seconds' OR (p_sweep AND m.mark < a.low_water) AS moves
        FROM asked a CROSS JOIN LATERAL (
            SELECT array_agg(i.message_id) AS found, array_agg(i.body_bytes) AS bytes, count(*) AS messages,
                max(i.available_at) AS last_at, min(i.available_at) AS first_at
            FROM (
                (SELECT i.message_id, i.available_at, i.body_bytes FROM statesvc.inbox i
                WHERE a.first IS NULL
                    AND i.carrier_id = a.carrier_id AND i.token IS NULL AND i.available_at >= a.start AND i.available_at <= p_now
                    AND (p_stage = 'any' OR i.stage = p_stage) AND i.message_id <> ALL (p_busy)
                ORDER BY i.available_at, i.message_id LIMIT a.share)
                UNION ALL
                (SELECT i.* FROM generate_series(0, 100) AS bucket CROSS JOIN LATERAL (
                    SELECT i.message_id, i.available_at, i.body_bytes FROM statesvc.inbox i
                    WHERE i.carrier_id = a.carrier_id AND i.token IS NULL AND statesvc.bucket(i.message_id, i.carrier_id, i.stage) = bucket
                        AND i.available_at >= a.start
                        AND i.available_at <= CASE WHEN bucket BETWEEN a.first AND a.last OR bucket = 100 THEN p_now ELSE a.overdue END
                        AND i.message_id <> ALL (p_busy)
                    ORDER BY i.available_at LIMIT a.of_each) i
                WHERE a.first IS NOT NULL
                    AND CASE WHEN bucket = 100 THEN p_stage = 'any' ELSE bucket BETWEEN a.first AND a.last OR a.overdue IS NOT NULL END
                ORDER BY i.available_at LIMIT a.share)
            ) i
        ) f CROSS JOIN LATERAL (
            SELECT least(p_now, CASE WHEN a.first IS NULL THEN f.first_at ELSE (
                SELECT i.available_at FROM statesvc.inbox i
                WHERE i.carrier_id = a.carrier_id AND i.token IS NULL AND i.available_at >= a.start AND i.available_at <= p_now
                    AND (p_stage = 'any' OR i.stage = p_stage)
                ORDER BY i.available_at LIMIT 1) END) - statesvc.mark_margin() AS mark
            OFFSET 0
        ) m
    ), placed AS (
        -- in turn, as its weight says, each lane at a phase of its own: so a bound in rows or bytes cuts all alike, and no lane is
        -- always the last
        SELECT f.message_id, row_number() OVER w AS place, sum(f.body_bytes) OVER w AS bytes_through
        FROM searched s CROSS JOIN LATERAL unnest(s.found, s.bytes) WITH ORDINALITY AS f(message_id, body_bytes, turn)
        WINDOW w AS (ORDER BY (f.turn - s.phase) / s.weight, f.message_id)
    )
    SELECT
        ARRAY(SELECT p.message_id FROM placed p
            WHERE p.place <= p_limit AND (p.bytes_through <= p_bytes_max OR (p.place = 1 AND p_at_least_one))),
        least(sum(s.messages), p_limit),
        array_agg(s.carrier_id) FILTER (WHERE s.moves), array_agg(s.mark) FILTER (WHERE s.moves),
        array_agg(s.carrier_id) FILTER (WHERE s.has_more),
        array_agg(CASE WHEN s.first IS NULL THEN s.last_at ELSE s.start END) FILTER (WHERE s.has_more),
        array_agg(s.low_water) FILTER (WHERE s.has_more), array_agg(s.weight) FILTER (WHERE s.has_more),
        array_agg(s.room - s.share) FILTER (WHERE s.has_more), array_agg(s.first) FILTER (WHERE s.has_more),
        array_agg(s.last) FILTER (WHERE s.has_more), array_agg(s.overdue) FILTER (WHERE s.has_more)
    INTO message_ids, seen, moving, marks, lanes, starts, low_waters, weights, rooms, firsts, lasts, overdue
    FROM searched s;
END
$$;

-- Locks and leases those of the chosen messages that no other claim took meanwhile. `bytes`: of their bodies. `since`, `until`: the first
-- and the last `received_at`.
CREATE FUNCTION statesvc.take(
    p_token uuid, p_worker text, p_normalizer text, p_lease interval, p_now timestamptz, p_message_ids uuid[],
    OUT message_ids uuid[], OUT bytes bigint, OUT since timestamptz, OUT until timestamptz
)
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    WITH taken AS (
        -- = ANY(ARRAY(..)), not a join: the planner overestimates the choice and would scan the whole inbox
        UPDATE statesvc.inbox q
        SET token = p_token, worker = p_worker, normalizer = p_normalizer, leased_at = p_now, available_at = p_now + p_lease,
            attempts = q.attempts + 1
        WHERE q.message_id = ANY (ARRAY(
            SELECT i.message_id FROM statesvc.inbox i
            -- num_nulls, not IS NULL: where next to nothing is ready the planner would read the index of the ready ones whole, dead
            -- entries and all, rather than look up the keys
            WHERE i.message_id = ANY (p_message_ids) AND num_nulls(i.token) = 1 AND i.available_at <= p_now FOR UPDATE SKIP LOCKED))
        RETURNING q.message_id, q.body_bytes, q.received_at
    )
    SELECT coalesce(array_agg(t.message_id), '{}'), coalesce(sum(t.body_bytes), 0), min(t.received_at), max(t.received_at)
    INTO message_ids, bytes, since, until FROM taken t;
END
$$;

-- The reading that a message falls to; `statesvc`: ours.
CREATE FUNCTION statesvc.reader_of(p_rollout statesvc.rollout, p_bucket int) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN p_bucket < p_rollout.percent
        THEN CASE WHEN strpos(p_rollout.candidate, '@') > 0 THEN p_rollout.candidate ELSE 'statesvc' END
        ELSE coalesce(p_rollout.stable, 'statesvc') END;

-- The leased messages with their bodies, oldest first; one without a body is left out. Of the days of bodies only those from `p_since` to
-- `p_until` (of `received_at`) are opened. Being SQL it becomes part of the query that calls it.
CREATE FUNCTION statesvc.read_claimed(p_message_ids uuid[], p_since timestamptz, p_until timestamptz) RETURNS TABLE (
    message_id uuid, carrier_id text, token uuid, attempts smallint, retries smallint, received_at timestamptz, stage text,
    candidate text, percent smallint, shadow boolean, sealed_key bytea, commitment bytea, headers jsonb, sealed bytea,
    normalized_by text, normalized bytea, postponed smallint, stable text, in_share boolean, fallback_for text
)
    LANGUAGE sql STABLE AS $$
    -- bodies one by one, through their index: a join could read a whole day
    SELECT q.message_id, q.carrier_id, q.token, q.attempts, q.retries, q.received_at, q.stage,
        r.candidate, coalesce(r.percent, 0::smallint), coalesce(r.shadow, false), q.sealed_key,
        coalesce(b.commitment, k.commitment), coalesce(b.headers, k.headers), coalesce(b.sealed, k.sealed), n.normalizer, n.sealed,
        q.postponed, r.stable, r.percent > 0 AND statesvc.in_share(q.message_id, q.carrier_id, r.percent),
        CASE WHEN q.stage = 'raw' AND (r.stable IS NOT NULL OR (r.percent > 0 AND strpos(r.candidate, '@') > 0)) THEN
            nullif(statesvc.reader_of(r, statesvc.bucket(q.message_id, q.carrier_id, q.stage)), coalesce(q.normalizer, 'statesvc')) END
    FROM statesvc.inbox q
    LEFT JOIN LATERAL (
        SELECT b.* FROM statesvc.body b WHERE b.message_id = q.message_id AND b.received_at = q.received_at
            AND b.received_at BETWEEN p_since AND p_until LIMIT 1
    ) b ON true
    LEFT JOIN LATERAL (
        SELECT k.* FROM statesvc.body_retained k WHERE b.message_id IS NULL AND k.message_id = q.message_id LIMIT 1
    ) k ON true
    LEFT JOIN LATERAL (SELECT n.* FROM statesvc.normalized n WHERE n.message_id = q.message_id LIMIT 1) n ON true
    LEFT JOIN statesvc.rollout r ON r.carrier_id = q.carrier_id
    WHERE q.message_id = ANY (p_message_ids) AND (b.message_id IS NOT NULL OR k.message_id IS NOT NULL)
    ORDER BY q.received_at, q.message_id;
$$;

-- How long an ingest may take until it is visible: the marks stay that far behind.
CREATE FUNCTION statesvc.mark_margin() RETURNS interval LANGUAGE sql IMMUTABLE RETURN interval '1.5 seconds';

-- Moves the low-water marks of lanes, and that of the leases (the lane ''): it is one row and may move every second. It stays below every
-- ended lease that is left, so that a held carrier's are found as soon as it is released.
-- It moves by more than a second only: every move leaves a dead row, which the claims scan until a vacuum. Rows that another claim has
-- locked are skipped: to wait would be to wait for that claim's commit, and a mark that stays back costs time, never a message.
CREATE FUNCTION statesvc.move_marks(
    p_stage text, p_sweep boolean, p_now timestamptz, p_lease_mark timestamptz, p_moving text[], p_marks timestamptz[]
) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    v_step constant interval := interval '1 second';
    v_moving text[] := p_moving;
    v_marks timestamptz[] := p_marks;
    v_oldest timestamptz;
    v_mark timestamptz;
BEGIN
    IF p_sweep OR p_lease_mark < p_now - statesvc.mark_margin() - v_step THEN
        SELECT q.available_at INTO v_oldest FROM statesvc.inbox q
        WHERE q.token IS NOT NULL AND q.available_at <= p_now AND (p_sweep OR q.available_at >= p_lease_mark)
            AND (p_stage = 'any' OR q.stage = p_stage)
        ORDER BY q.available_at LIMIT 1;
        v_mark := least(p_now, v_oldest) - statesvc.mark_margin();
        IF v_mark > p_lease_mark + v_step OR v_mark < p_lease_mark THEN
            v_moving := v_moving || ''::text;
            v_marks := v_marks || v_mark;
        END IF;
    END IF;
    IF v_moving IS NOT NULL THEN
        UPDATE statesvc.lane l
        SET low_water = CASE WHEN p_stage = 'any' THEN m.mark ELSE l.low_water END,
            raw_low_water = CASE WHEN p_stage = 'raw' THEN m.mark ELSE l.raw_low_water END
        FROM unnest(v_moving, v_marks) AS m(carrier_id, mark)
        WHERE l.carrier_id = m.carrier_id AND p_stage IN ('any', 'raw') AND l.carrier_id = ANY (ARRAY(
            SELECT s.carrier_id FROM statesvc.lane s WHERE s.carrier_id = ANY (v_moving) FOR UPDATE SKIP LOCKED));
    END IF;
END
$$;

-- The `token` of a message that is given back. Normally NULL: it waits in its carrier's lane. A message with an attempt that ended
-- without a verdict never goes back there: it is parked, under a token that nobody knows, as if leased until it is due again.
CREATE FUNCTION statesvc.waiting_token(p_attempts smallint, p_retries smallint) RETURNS uuid
    LANGUAGE sql VOLATILE
    RETURN CASE WHEN p_attempts - 1 - p_retries > 0 THEN gen_random_uuid() END;

-- Records how the current attempt at a message ended. The caller holds the row's lock.
CREATE FUNCTION statesvc.note_attempt(
    p_message_id uuid, p_outcome text, p_ended_at timestamptz, p_error text DEFAULT NULL, p_normalizer text DEFAULT NULL
) RETURNS void
    LANGUAGE sql
    BEGIN ATOMIC
        INSERT INTO statesvc.message_attempt (message_id, started_at, ended_at, attempt, carrier_id, outcome, worker, error, normalizer)
        SELECT q.message_id, q.leased_at, p_ended_at, q.attempts, q.carrier_id, p_outcome, q.worker, left(p_error, 200),
            coalesce(p_normalizer, n.normalizer, q.normalizer)
        FROM statesvc.inbox q LEFT JOIN statesvc.normalized n ON n.message_id = q.message_id
        WHERE q.message_id = p_message_id;
    END;

-- Takes a message out of the inbox into the dead letters. The caller holds the row's lock.
CREATE FUNCTION statesvc.bury_locked(p_message_id uuid, p_cause text, p_detail text, p_normalizer text DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    v_read text;
    v_message statesvc.inbox;
    v_violated text;
BEGIN
    SELECT n.normalizer INTO v_read FROM statesvc.normalized n WHERE n.message_id = p_message_id;
    DELETE FROM statesvc.inbox WHERE message_id = p_message_id RETURNING * INTO v_message;
    IF v_message.message_id IS NULL THEN
        RETURN;
    END IF;
    BEGIN
        INSERT INTO statesvc.dead_letter
            (kind, cause, carrier_id, created_at, message_id, received_at, detail, attempts, worker, sealed_key, normalizer)
        VALUES ('message', p_cause, v_message.carrier_id, statesvc.clock(), p_message_id, v_message.received_at, p_detail,
            v_message.attempts, v_message.worker, v_message.sealed_key, coalesce(p_normalizer, v_read));
    EXCEPTION WHEN unique_violation THEN
        -- not ON CONFLICT: its target takes a right to read the table, which a worker with a role of its own lacks.
        -- It lies there already for this cause; any other collision would lose the message, and raises.
        GET STACKED DIAGNOSTICS v_violated = CONSTRAINT_NAME;
        IF v_violated <> 'dead_letter_message' THEN
            RAISE;
        END IF;
    END;
END $$;
