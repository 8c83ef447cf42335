-- Foreign readings: a carrier is read by a fleet that is not ours, or tried on it (docs/strangle.md). Parts of the claim protocol.
--
-- A rollout names two readings, stable and candidate, each ours or foreign (`name@version`). A message falls to the candidate where its
-- bucket is below `percent`, else to stable: a function of its id, so it is the same in every process and at every attempt. What was handed
-- over or declined is ours. Those that read tables which a foreign worker may not run as their owner.

-- What falls to this caller. `without`: the carriers of which nothing does. `split`: those of which some does, with what is aligned to it:
-- its buckets (from `firsts` to `lasts`), and `overdue`: what became available until then is the caller's whoever's it was, because its
-- reader has not asked for `fallback_seconds`. All of any other carrier may be claimed. A candidate is a reader once it was given a share,
-- stable always: it is the way back.
CREATE FUNCTION statesvc.readings(
    p_stage text, p_normalizer text, p_now timestamptz,
    OUT without text[], OUT split text[], OUT firsts int[], OUT lasts int[], OUT overdue timestamptz[]
)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT coalesce(array_agg(f.carrier_id) FILTER (WHERE NOT f.is_reader AND p_stage <> 'any'), '{}'),
        array_agg(f.carrier_id) FILTER (WHERE f.is_split), array_agg(f.first) FILTER (WHERE f.is_split),
        array_agg(f.last) FILTER (WHERE f.is_split), array_agg(f.overdue) FILTER (WHERE f.is_split)
    INTO without, split, firsts, lasts, overdue
    FROM (
        SELECT d.*, (d.is_reader OR p_stage = 'any') AND NOT (d.first = 0 AND d.last = 99) AS is_split,
            CASE WHEN d.is_reader AND NOT EXISTS (
                SELECT FROM statesvc.reader k
                WHERE k.carrier_id IN (d.carrier_id, '*') AND k.normalizer = d.other AND k.asked_at > p_now - d.fallback
            ) THEN p_now - d.fallback END AS overdue
        FROM (
            SELECT r.carrier_id, make_interval(secs => r.fallback_seconds) AS fallback,
                c.is_stable OR (c.is_candidate AND r.percent > 0) AS is_reader,
                CASE WHEN c.is_candidate THEN 0 ELSE r.percent END AS first, CASE WHEN c.is_stable THEN 99 ELSE r.percent - 1 END AS last,
                statesvc.reader_of(r, CASE WHEN c.is_stable THEN 0 ELSE 100 END) AS other
            FROM statesvc.rollout r CROSS JOIN LATERAL (
                SELECT CASE WHEN p_stage = 'any' THEN r.stable IS NULL ELSE coalesce(r.stable = p_normalizer, false) END AS is_stable,
                    CASE WHEN p_stage = 'any' THEN coalesce(strpos(r.candidate, '@') = 0, false)
                        ELSE coalesce(r.candidate = p_normalizer, false) END AS is_candidate
            ) c
            WHERE r.stable IS NOT NULL OR ((r.percent > 0 OR r.shadow) AND (p_stage <> 'any' OR strpos(r.candidate, '@') > 0))
        ) d
    ) f;
END
$$;

-- Notes that a reading is asked for; writes at most every two seconds, and never waits for another claim that notes the same.
CREATE FUNCTION statesvc.note_reader(p_stage text, p_normalizer text, p_carriers text[], p_now timestamptz) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_since timestamptz := p_now - interval '2 seconds';
    v_carriers text[];
BEGIN
    v_carriers := ARRAY(
        SELECT c FROM unnest(coalesce(p_carriers, ARRAY['*'])) c
        WHERE (c = '*' OR EXISTS (SELECT FROM statesvc.lane l WHERE l.carrier_id = c)) AND NOT EXISTS (
            SELECT FROM statesvc.reader k WHERE k.normalizer = p_normalizer AND k.carrier_id = c
                AND CASE WHEN p_stage = 'trial' THEN k.tried_at ELSE k.asked_at END > v_since));
    IF v_carriers <> '{}' THEN
        INSERT INTO statesvc.reader (carrier_id, normalizer) SELECT DISTINCT c, p_normalizer FROM unnest(v_carriers) c ORDER BY c
            ON CONFLICT (carrier_id, normalizer) DO NOTHING;
        UPDATE statesvc.reader k
        SET asked_at = CASE WHEN p_stage = 'trial' THEN k.asked_at ELSE p_now END,
            tried_at = CASE WHEN p_stage = 'trial' THEN p_now ELSE k.tried_at END
        WHERE k.normalizer = p_normalizer AND k.carrier_id = ANY (ARRAY(
            SELECT s.carrier_id FROM statesvc.reader s
            WHERE s.normalizer = p_normalizer AND s.carrier_id = ANY (v_carriers) ORDER BY s.carrier_id FOR UPDATE SKIP LOCKED));
    END IF;
END
$$;

-- Counts what this claim leased in the place of readers that did not.
CREATE FUNCTION statesvc.note_fallbacks(p_message_ids uuid[], p_now timestamptz) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        INSERT INTO statesvc.reader AS k (carrier_id, normalizer, fallbacks, fallback_at)
        SELECT f.carrier_id, f.fallback_for, count(*), p_now FROM (
            SELECT q.carrier_id, statesvc.reader_of(r, statesvc.bucket(q.message_id, q.carrier_id, q.stage)) AS fallback_for, q.normalizer
            FROM statesvc.inbox q JOIN statesvc.rollout r ON r.carrier_id = q.carrier_id
            WHERE q.message_id = ANY (p_message_ids) AND q.stage = 'raw'
        ) f
        WHERE f.fallback_for <> coalesce(f.normalizer, 'statesvc')
        GROUP BY f.carrier_id, f.fallback_for ORDER BY f.carrier_id, f.fallback_for
        ON CONFLICT (carrier_id, normalizer) DO UPDATE SET fallbacks = k.fallbacks + excluded.fallbacks, fallback_at = excluded.fallback_at;
$$;

-- Leases trials of a candidate, oldest first, with the bodies that they are about.
CREATE FUNCTION statesvc.claim_trials(
    p_token uuid, p_normalizer text, p_carriers text[], p_without text[], p_limit int, p_lease interval, p_bytes_max bigint,
    p_now timestamptz
) RETURNS TABLE (
    message_id uuid, carrier_id text, attempts smallint, received_at timestamptz, sealed_key bytea, commitment bytea, headers jsonb,
    sealed bytea
)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH ready AS MATERIALIZED (
        SELECT t.trial_id, t.body_bytes FROM statesvc.trial t
        WHERE t.candidate = p_normalizer AND t.verdict IS NULL AND t.available_at <= p_now AND t.ends_at > p_now AND t.attempts < 5
            AND (p_carriers IS NULL OR t.carrier_id = ANY (p_carriers)) AND t.carrier_id <> ALL (p_without)
        ORDER BY t.trial_id LIMIT p_limit FOR UPDATE SKIP LOCKED
    ), chosen AS (
        SELECT r.trial_id, sum(r.body_bytes) OVER (ORDER BY r.trial_id) - r.body_bytes AS bytes_before, r.body_bytes FROM ready r
    ), leased AS (
        UPDATE statesvc.trial t SET token = p_token, available_at = p_now + p_lease, attempts = t.attempts + 1
        FROM chosen c WHERE t.trial_id = c.trial_id AND (c.bytes_before = 0 OR c.bytes_before + c.body_bytes <= p_bytes_max)
        RETURNING t.*
    )
    SELECT l.message_id, l.carrier_id, l.attempts, l.received_at, l.sealed_key, coalesce(b.commitment, k.commitment),
        coalesce(b.headers, k.headers), coalesce(b.sealed, k.sealed)
    FROM leased l
    LEFT JOIN LATERAL (
        SELECT b.* FROM statesvc.body b WHERE b.message_id = l.message_id AND b.received_at = l.received_at LIMIT 1) b ON true
    LEFT JOIN LATERAL (
        SELECT k.* FROM statesvc.body_retained k WHERE b.message_id IS NULL AND k.message_id = l.message_id LIMIT 1) k ON true
    WHERE b.message_id IS NOT NULL OR k.message_id IS NOT NULL
    ORDER BY l.trial_id;
END
$$;

-- The verdict "read" on trials: the hand-overs wait for their comparison. Returns how many the token still held.
CREATE FUNCTION statesvc.settle_trials(p_token uuid, p_results jsonb) RETURNS int
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_taken int;
BEGIN
    UPDATE statesvc.trial t SET verdict = 'read', sealed = decode(e ->> 'events', 'base64'), token = NULL
    FROM jsonb_array_elements(p_results) e
    WHERE t.token = p_token AND t.message_id = (e ->> 'message_id')::uuid AND t.candidate = e ->> 'normalizer' AND t.verdict IS NULL;
    GET DIAGNOSTICS v_taken = ROW_COUNT;
    RETURN v_taken;
END
$$;

-- Any other end of the lease on trials (`p_message_ids` NULL: on all of the token). `p_verdict` NULL: they wait again, for `p_delay`.
CREATE FUNCTION statesvc.end_trials(p_token uuid, p_message_ids uuid[], p_verdict text, p_delay interval DEFAULT '0') RETURNS int
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_held int;
BEGIN
    UPDATE statesvc.trial t SET token = NULL, verdict = p_verdict, available_at = statesvc.clock() + p_delay
    WHERE t.token = p_token AND (p_message_ids IS NULL OR t.message_id = ANY (p_message_ids)) AND t.verdict IS NULL;
    GET DIAGNOSTICS v_held = ROW_COUNT;
    RETURN v_held;
END
$$;

-- Moves the end of the lease on trials.
CREATE FUNCTION statesvc.extend_trials(p_token uuid, p_lease interval) RETURNS int
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_held int;
BEGIN
    UPDATE statesvc.trial t SET available_at = statesvc.clock() + p_lease WHERE t.token = p_token AND t.verdict IS NULL;
    GET DIAGNOSTICS v_held = ROW_COUNT;
    RETURN v_held;
END
$$;
