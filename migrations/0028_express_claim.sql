-- A claim for whoever would wait behind a flood, marks that follow more closely, and bounds that hold for every client.
--
-- `claim`: `p_except` lets a worker whose hands are full of some carriers ask for the others' messages; the low-water marks stay 2 to 5 s
-- behind instead of 10 to 20 (docs/decisions/0022-express.md); the burials that it makes can be told. `retry` keeps the budget of transient
-- failures itself, so that workers in other languages have it too.

-- Leases to `p_worker` the one message that has waited longest of those whose lease ended, or that are parked; alone, so that a
-- message which kills its worker charges nobody else. On its way it buries those that did so 5 times. `p_full`: carriers that may
-- not have another message in flight; a lease that is taken over adds none. NULL: there is none. `buried`: what it buried, and of which
-- carriers.
DROP FUNCTION statesvc.claim_ended(uuid, text, interval, text, timestamptz, timestamptz, text[], text[]);
CREATE FUNCTION statesvc.claim_ended(
    p_token uuid, p_worker text, p_lease interval, p_stage text, p_now timestamptz, p_from timestamptz, p_held text[], p_full text[],
    OUT message_id uuid, OUT rescued_from text, OUT buried uuid[], OUT buried_carriers text[]
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
        SELECT q.message_id, q.carrier_id, q.worker, q.available_at, q.attempts - q.retries AS deaths INTO v_row
        FROM statesvc.inbox q
        WHERE q.token IS NOT NULL AND q.available_at >= p_from AND q.available_at <= p_now
            AND (p_stage = 'any' OR q.stage = p_stage)
            AND q.carrier_id <> ALL (p_held) AND (q.worker IS NOT NULL OR q.carrier_id <> ALL (p_full))
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
        SET token = p_token, worker = p_worker, leased_at = p_now, available_at = p_now + p_lease, attempts = q.attempts + 1
        WHERE q.message_id = v_row.message_id;
        message_id := v_row.message_id;
        rescued_from := v_row.worker;
        RETURN;
    END LOOP;
END
$$;

-- Leases up to `p_limit` messages (and `p_bytes_max` of bodies, at least one) to `p_worker` for `p_lease`.
--
-- First comes a message whose lease ended, alone; with `p_rescue_first` false only where no lane has anything, so that a worker can
-- take turns. Else every lane gets its share by weight, and what is left over goes by weight to those that have more. Rows are
-- chosen without a lock, and exactly the chosen ones are locked; where another claim was faster, it looks again beyond them. Room that a
-- burial makes for a bounded carrier is given at once.
-- `p_stage`: 'raw' for a foreign normalizing worker, 'any' for the workers that append. `p_sweep` looks below the low-water marks.
-- `p_except`: an express claim, for a worker that has these carriers' messages in hand: it looks at the other lanes alone, neither at
-- ended leases nor at their mark. `p_tell_burials`: what the claim buried is answered too, in rows of nothing but the message's id, its
-- carrier and `buried_for`, the cause.
DROP FUNCTION statesvc.claim(text, int, interval, text, bigint, boolean, boolean);
CREATE FUNCTION statesvc.claim(
    p_worker text, p_limit int, p_lease interval, p_stage text DEFAULT 'raw', p_bytes_max bigint DEFAULT 4194304,
    p_sweep boolean DEFAULT false, p_rescue_first boolean DEFAULT true, p_except text[] DEFAULT NULL, p_tell_burials boolean DEFAULT false
) RETURNS TABLE (
    message_id uuid, carrier_id text, token uuid, attempts smallint, retries smallint, received_at timestamptz, stage text,
    candidate text, percent smallint, shadow boolean, sealed_key bytea, commitment bytea, headers jsonb, sealed bytea,
    normalized_by text, normalized bytea, rescued_from text, buried_for text
)
    -- generic plans: planning for each call would cost more than the claim itself, and the right plan never depends on the values
    LANGUAGE plpgsql SET work_mem = '16MB' SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := statesvc.clock();
    v_token uuid := gen_random_uuid();
    v_worker text := coalesce(p_worker, 'unnamed');  -- a row without a worker would count as parked
    -- What an ingest is allowed to take, its flush included. The walk over what died since is paid by every claim under a pinned xmin;
    -- so is, by the scan of the lanes, every move of a mark.
    v_margin constant interval := interval '2 seconds';
    v_step constant interval := interval '3 seconds';
    v_held text[];
    v_bounded text[];
    v_full text[] := '{}';
    v_open text[] := '{}';
    v_open_rooms int[] := '{}';
    v_lease_mark timestamptz;
    v_any_lease_mark timestamptz;
    v_oldest timestamptz;
    v_mark timestamptz;
    v_rescue record;
    v_rescued_from text;
    v_buried uuid[] := '{}';
    v_buried_carriers text[] := '{}';
    v_missing uuid[];
    v_missing_carriers text[];
    -- the lanes that may have more, aligned: from where to look, their marks, weights and rooms
    v_lanes text[];
    v_starts timestamptz[];
    v_low_waters timestamptz[];
    v_weights float8[];
    v_rooms int[];
    v_moving text[];
    v_marks timestamptz[];
    v_is_first boolean := true;
    v_left int := p_limit;
    v_bytes_left bigint := p_bytes_max;
    v_seen int;
    v_chosen uuid[];
    v_taken uuid[];
    v_bytes bigint;
    v_busy uuid[] := '{}';
    v_ids uuid[] := '{}';
    v_returned int;
BEGIN
    SELECT coalesce(array_agg(r.carrier_id), '{}') INTO v_held FROM statesvc.rollout r WHERE r.hold;
    IF '*' = ANY (v_held) THEN
        RETURN;
    END IF;
    v_held := v_held || p_except;
    SELECT CASE WHEN p_stage = 'raw' THEN l.raw_low_water ELSE l.low_water END, l.low_water INTO v_lease_mark, v_any_lease_mark
    FROM statesvc.lane l WHERE l.carrier_id = '';

    SELECT array_agg(a.carrier_id) INTO v_bounded
    FROM statesvc.allotment a WHERE a.in_flight_max IS NOT NULL AND a.carrier_id <> ALL (v_held);
    -- once more where a burial made room for a bounded carrier, and nothing was found
    LOOP
        IF v_bounded IS NOT NULL THEN
            v_open := statesvc.lock_lanes(v_bounded);
            -- a statement of its own, so that its snapshot is younger than the locks. No lease ends below the mark of all.
            WITH in_flight AS MATERIALIZED (
                SELECT q.carrier_id, count(*)::int AS messages FROM statesvc.inbox q
                WHERE q.token IS NOT NULL AND q.worker IS NOT NULL AND q.available_at >= v_any_lease_mark AND q.carrier_id = ANY (v_open)
                GROUP BY q.carrier_id
            )
            SELECT coalesce(array_agg(a.carrier_id), '{}'), coalesce(array_agg(a.in_flight_max - coalesce(f.messages, 0)), '{}')
            INTO v_open, v_open_rooms
            FROM statesvc.allotment a LEFT JOIN in_flight f ON f.carrier_id = a.carrier_id
            WHERE a.carrier_id = ANY (v_open) AND a.in_flight_max > coalesce(f.messages, 0);
            v_full := ARRAY(SELECT b FROM unnest(v_bounded) b WHERE b <> ALL (v_open));
        END IF;

        IF p_rescue_first AND p_except IS NULL THEN
            v_rescue := statesvc.claim_ended(v_token, v_worker, p_lease, p_stage, v_now,
                CASE WHEN p_sweep THEN '-infinity' ELSE v_lease_mark END, v_held, v_full);
            v_ids := array_remove(ARRAY[v_rescue.message_id], NULL);
            v_rescued_from := v_rescue.rescued_from;
            v_buried := v_buried || v_rescue.buried;
            v_buried_carriers := v_buried_carriers || v_rescue.buried_carriers;
            CONTINUE WHEN v_ids = '{}' AND v_rescue.buried_carriers && v_bounded;
        END IF;

        IF v_ids = '{}' THEN
            SELECT array_agg(l.carrier_id), array_agg(CASE WHEN p_sweep THEN '-infinity' ELSE l.mark END), array_agg(l.mark),
                array_agg(l.weight), array_agg(l.room)
            INTO v_lanes, v_starts, v_low_waters, v_weights, v_rooms
            FROM (
                SELECT l.carrier_id, CASE WHEN p_stage = 'raw' THEN l.raw_low_water ELSE l.low_water END AS mark,
                    coalesce(a.weight, 1) AS weight, o.room
                FROM statesvc.lane l
                LEFT JOIN statesvc.allotment a ON a.carrier_id = l.carrier_id
                LEFT JOIN unnest(v_open, v_open_rooms) AS o(carrier_id, room) ON o.carrier_id = l.carrier_id
                WHERE l.carrier_id <> '' AND l.carrier_id <> ALL (v_held) AND l.carrier_id <> ALL (v_full)
            ) l;
            WHILE v_left > 0 AND v_lanes IS NOT NULL LOOP
                WITH asked AS MATERIALIZED (
                    SELECT a.*, random() AS phase,
                        least(greatest(1, floor(v_left * a.weight / sum(a.weight) OVER ()))::int, a.room) AS share
                    FROM unnest(v_lanes, v_starts, v_low_waters, v_weights, v_rooms) AS a(carrier_id, start, low_water, weight, room)
                ), seen AS MATERIALIZED (
                    -- by turns as its weight says, each lane at a phase of its own: so a bound in rows or bytes cuts all alike, and no
                    -- lane is always the last
                    SELECT a.carrier_id, q.message_id, q.available_at, q.body_bytes, (q.turn - a.phase) / a.weight AS turn
                    FROM asked a CROSS JOIN LATERAL (
                        SELECT i.*, row_number() OVER (ORDER BY i.available_at, i.message_id) AS turn
                        FROM (
                            SELECT i.message_id, i.available_at, i.body_bytes FROM statesvc.inbox i
                            WHERE i.carrier_id = a.carrier_id AND i.token IS NULL AND i.available_at >= a.start AND i.available_at <= v_now
                                AND (p_stage = 'any' OR i.stage = p_stage) AND i.message_id <> ALL (v_busy)
                            ORDER BY i.available_at, i.message_id LIMIT a.share
                        ) i
                    ) q
                ), placed AS (
                    SELECT s.message_id, row_number() OVER w AS place, sum(s.body_bytes) OVER w AS bytes_through
                    FROM seen s WINDOW w AS (ORDER BY s.turn, s.message_id)
                ), looked_at AS (
                    SELECT a.*, s.found, s.last, least(v_now, s.first) - v_margin AS mark
                    FROM asked a LEFT JOIN (
                        SELECT s.carrier_id, count(*) AS found, min(s.available_at) AS first, max(s.available_at) AS last
                        FROM seen s GROUP BY s.carrier_id
                    ) s ON s.carrier_id = a.carrier_id
                ), more AS (
                    SELECT * FROM looked_at l WHERE l.found = l.share AND (l.room IS NULL OR l.room > l.share)
                ), moving AS (
                    -- at most every few seconds a lane; down only by a sweep, which saw what lies below
                    SELECT l.carrier_id, l.mark FROM looked_at l
                    WHERE v_is_first AND (l.mark > l.low_water + v_step OR (p_sweep AND l.mark < l.low_water))
                )
                SELECT
                    ARRAY(SELECT p.message_id FROM placed p
                        WHERE p.place <= v_left AND (p.bytes_through <= v_bytes_left OR (p.place = 1 AND v_ids = '{}'))),
                    (SELECT least(count(*), v_left) FROM seen),
                    m.lanes, m.starts, m.low_waters, m.weights, m.rooms,
                    CASE WHEN v_is_first THEN (SELECT array_agg(g.carrier_id) FROM moving g) ELSE v_moving END,
                    CASE WHEN v_is_first THEN (SELECT array_agg(g.mark) FROM moving g) ELSE v_marks END
                INTO v_chosen, v_seen, v_lanes, v_starts, v_low_waters, v_weights, v_rooms, v_moving, v_marks
                FROM (
                    SELECT array_agg(m.carrier_id) AS lanes, array_agg(m.last) AS starts, array_agg(m.low_water) AS low_waters,
                        array_agg(m.weight) AS weights, array_agg(m.room - m.share) AS rooms
                    FROM more m
                ) m;
                v_is_first := false;
                EXIT WHEN v_chosen = '{}';
                WITH taken AS (
                    -- = ANY(ARRAY(..)), not a join: the planner overestimates the choice and would scan the whole inbox
                    UPDATE statesvc.inbox q
                    SET token = v_token, worker = v_worker, leased_at = v_now, available_at = v_now + p_lease, attempts = q.attempts + 1
                    WHERE q.message_id = ANY (ARRAY(
                        SELECT i.message_id FROM statesvc.inbox i
                        -- num_nulls, not IS NULL: where next to nothing is ready the planner would read the index of the ready ones whole,
                        -- dead entries and all, rather than look up the keys
                        WHERE i.message_id = ANY (v_chosen) AND num_nulls(i.token) = 1 AND i.available_at <= v_now FOR UPDATE SKIP LOCKED))
                    RETURNING q.message_id, q.body_bytes
                )
                SELECT coalesce(array_agg(t.message_id), '{}'), coalesce(sum(t.body_bytes), 0) INTO v_taken, v_bytes FROM taken t;
                v_ids := v_ids || v_taken;
                v_left := v_left - cardinality(v_taken);
                v_bytes_left := v_bytes_left - v_bytes;
                EXIT WHEN cardinality(v_chosen) < v_seen OR v_bytes_left <= 0;
                IF cardinality(v_taken) < cardinality(v_chosen) THEN
                    v_busy := v_busy || ARRAY(SELECT c FROM unnest(v_chosen) c EXCEPT SELECT t FROM unnest(v_taken) t);
                END IF;
            END LOOP;
            IF v_ids = '{}' AND NOT p_rescue_first AND p_except IS NULL THEN
                v_rescue := statesvc.claim_ended(v_token, v_worker, p_lease, p_stage, v_now,
                    CASE WHEN p_sweep THEN '-infinity' ELSE v_lease_mark END, v_held, v_full);
                v_ids := array_remove(ARRAY[v_rescue.message_id], NULL);
                v_rescued_from := v_rescue.rescued_from;
                v_buried := v_buried || v_rescue.buried;
                v_buried_carriers := v_buried_carriers || v_rescue.buried_carriers;
                CONTINUE WHEN v_ids = '{}' AND v_rescue.buried_carriers && v_bounded;
            END IF;
        END IF;
        EXIT;
    END LOOP;

    -- The mark of the leases stays below every ended one that is left: a held carrier's are found as soon as it is released.
    IF p_except IS NULL AND (p_sweep OR v_lease_mark < v_now - v_margin - v_step) THEN
        SELECT q.available_at INTO v_oldest FROM statesvc.inbox q
        WHERE q.token IS NOT NULL AND q.available_at <= v_now AND (p_sweep OR q.available_at >= v_lease_mark)
            AND (p_stage = 'any' OR q.stage = p_stage)
        ORDER BY q.available_at LIMIT 1;
        v_mark := least(v_now, v_oldest) - v_margin;
        IF v_mark > v_lease_mark + v_step OR v_mark < v_lease_mark THEN
            v_moving := v_moving || ''::text;
            v_marks := v_marks || v_mark;
        END IF;
    END IF;
    IF v_moving IS NOT NULL THEN
        -- never waits for another claim
        UPDATE statesvc.lane l
        SET low_water = CASE WHEN p_stage = 'any' THEN m.mark ELSE l.low_water END,
            raw_low_water = CASE WHEN p_stage = 'raw' THEN m.mark ELSE l.raw_low_water END
        FROM unnest(v_moving, v_marks) AS m(carrier_id, mark)
        WHERE l.carrier_id = m.carrier_id AND p_stage IN ('any', 'raw') AND l.carrier_id = ANY (ARRAY(
            SELECT s.carrier_id FROM statesvc.lane s WHERE s.carrier_id = ANY (v_moving) FOR UPDATE SKIP LOCKED));
    END IF;

    -- bodies one by one, through their index: a join could read a whole day
    RETURN QUERY
    SELECT q.message_id, q.carrier_id, q.token, q.attempts, q.retries, q.received_at, q.stage,
        r.candidate, coalesce(r.percent, 0::smallint), coalesce(r.shadow, false), q.sealed_key,
        coalesce(b.commitment, k.commitment), coalesce(b.headers, k.headers), coalesce(b.sealed, k.sealed), n.normalizer, n.sealed, v_rescued_from,
        NULL::text
    FROM statesvc.inbox q
    LEFT JOIN LATERAL (
        SELECT b.* FROM statesvc.body b WHERE b.message_id = q.message_id AND b.received_at = q.received_at LIMIT 1
    ) b ON true
    LEFT JOIN LATERAL (SELECT k.* FROM statesvc.body_kept k WHERE b.message_id IS NULL AND k.message_id = q.message_id LIMIT 1) k ON true
    LEFT JOIN LATERAL (SELECT n.* FROM statesvc.normalized n WHERE n.message_id = q.message_id LIMIT 1) n ON true
    LEFT JOIN statesvc.rollout r ON r.carrier_id = q.carrier_id
    WHERE q.message_id = ANY (v_ids) AND (b.message_id IS NOT NULL OR k.message_id IS NOT NULL)
    ORDER BY q.received_at, q.message_id;
    GET DIAGNOSTICS v_returned = ROW_COUNT;
    IF v_returned < cardinality(v_ids) THEN
        -- never silently: a human finds it among the dead letters
        SELECT array_agg(q.message_id), array_agg(q.carrier_id) INTO v_missing, v_missing_carriers
        FROM statesvc.inbox q
        WHERE q.message_id = ANY (v_ids)
            AND NOT EXISTS (SELECT FROM statesvc.body b WHERE b.message_id = q.message_id AND b.received_at = q.received_at)
            AND NOT EXISTS (SELECT FROM statesvc.body_kept k WHERE k.message_id = q.message_id);
        PERFORM statesvc.bury_locked(m, 'body_missing', 'neither the day''s bodies nor the kept ones have it') FROM unnest(v_missing) m;
    END IF;
    IF p_tell_burials AND (v_buried <> '{}' OR v_missing IS NOT NULL) THEN
        RETURN QUERY
        SELECT b.message_id, b.carrier_id, NULL::uuid, NULL::smallint, NULL::smallint, NULL::timestamptz, NULL::text,
            NULL::text, NULL::smallint, NULL::boolean, NULL::bytea, NULL::bytea, NULL::jsonb, NULL::bytea, NULL::text, NULL::bytea,
            NULL::text, b.cause
        FROM (
            SELECT w.*, 'worker_died'::text AS cause FROM unnest(v_buried, v_buried_carriers) AS w(message_id, carrier_id)
            UNION ALL
            SELECT w.*, 'body_missing' FROM unnest(v_missing, v_missing_carriers) AS w(message_id, carrier_id)
        ) b;
    END IF;
END
$$;

-- Gives messages back after a transient failure, available again after their delay; one that was given back 20 times goes to the dead
-- letters instead. Returns how many the token still held.
CREATE OR REPLACE FUNCTION statesvc.retry(
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
    RETURN v_held;
END
$$;
