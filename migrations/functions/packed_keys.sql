-- The dedupe keys of shipments whose entries are all archived, packed: a row of `event_key` takes some 190 bytes, its digest in the shipment's
-- own row eight. An id that we derive names its shipment, so the set is found by the shipment, under the stream's
-- lock. Ids of the carriers' own may be said of any shipment and have facts to be held against: they stay, as aliases do and what
-- they stand for.

-- What stands for an id in its shipment's set.
CREATE FUNCTION statesvc.packed_key(p_event_id text) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN substr(sha256(convert_to(p_event_id, 'UTF8')), 1, 8);

-- Whether a set holds an id. One that is found across the border of two others, by a chance in 2^60, counts as absent.
CREATE FUNCTION statesvc.holds_key(p_packed bytea, p_event_id text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN position(statesvc.packed_key(p_event_id) IN p_packed) % 8 = 1;

-- What stands for the values that the scan of this id carried, each eight bytes of `p_attribute_digests`.
CREATE FUNCTION statesvc.packed_values(p_event_id text, p_attribute_digests bytea) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (SELECT string_agg(substr(sha256(convert_to(p_event_id, 'UTF8') || substr(p_attribute_digests, n, 8)), 1, 8), '' ORDER BY n)
        FROM generate_series(1, octet_length(p_attribute_digests), 8) n);

-- Packs what may be packed of the next `p_limit` keys after a place, in one transaction; answers the last of them (NULL: there were
-- none) and how many it packed. A shipment that is locked is left for the next pass. Lock order: ARCHITECTURE.md.
CREATE FUNCTION statesvc.pack_keys(p_carrier_id text, p_event_id text, p_limit int, OUT carrier_id text, OUT event_id text, OUT packed bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET timezone = 'UTC' AS $$
DECLARE
    v_shipments uuid[];
BEGIN
    SELECT k.carrier_id, k.event_id INTO carrier_id, event_id FROM (
        SELECT n.carrier_id, n.event_id FROM statesvc.event_key n WHERE (n.carrier_id, n.event_id) > (p_carrier_id, p_event_id)
        ORDER BY n.carrier_id, n.event_id LIMIT p_limit) k
    ORDER BY k.carrier_id DESC, k.event_id DESC LIMIT 1;
    packed := 0;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- every month between the first and the last entry of the shipment is archived
    SELECT array_agg(l.shipment_id) INTO v_shipments FROM (
        SELECT s.shipment_id FROM statesvc.stream s
        WHERE s.shipment_id = ANY (ARRAY(
                SELECT DISTINCT n.shipment_id FROM statesvc.event_key n
                WHERE (n.carrier_id, n.event_id) > (p_carrier_id, p_event_id)
                    AND (n.carrier_id, n.event_id) <= (pack_keys.carrier_id, pack_keys.event_id)
                    AND n.facts_digest = '' AND n.alias_of IS NULL))
            AND s.version > 0 AND s.recorded_at < (SELECT max(a.ends) FROM statesvc.log_archive a WHERE a.dropped_at IS NOT NULL)
            AND NOT EXISTS (
                SELECT FROM generate_series(date_trunc('month', s.first_recorded_at), s.recorded_at, interval '1 month') m
                WHERE NOT EXISTS (SELECT FROM statesvc.log_archive a WHERE a.month = m::date AND a.dropped_at IS NOT NULL))
        ORDER BY s.shipment_id FOR NO KEY UPDATE SKIP LOCKED) l;
    IF v_shipments IS NULL THEN
        RETURN;
    END IF;
    -- statements of their own, whose snapshots are taken under the locks; the trigger of the second looks at what the first wrote
    UPDATE statesvc.stream s
    SET packed_keys = coalesce(s.packed_keys, '') || u.keys, packed_values = nullif(coalesce(s.packed_values, '') || u.attribute_digests, '')
    FROM (
        SELECT k.shipment_id, string_agg(statesvc.packed_key(k.event_id), '') AS keys,
            coalesce(string_agg(statesvc.packed_values(k.event_id, k.attribute_digests), ''), '') AS attribute_digests
        FROM statesvc.event_key k
        WHERE (k.carrier_id, k.event_id) > (p_carrier_id, p_event_id)
            AND (k.carrier_id, k.event_id) <= (pack_keys.carrier_id, pack_keys.event_id)
            AND k.shipment_id = ANY (v_shipments) AND k.facts_digest = '' AND k.alias_of IS NULL
        GROUP BY k.shipment_id) u
    WHERE s.shipment_id = u.shipment_id;
    PERFORM set_config('statesvc.packing_keys', 'on', true);
    DELETE FROM statesvc.event_key k
    WHERE (k.carrier_id, k.event_id) > (p_carrier_id, p_event_id)
        AND (k.carrier_id, k.event_id) <= (pack_keys.carrier_id, pack_keys.event_id)
        AND k.shipment_id = ANY (v_shipments) AND k.facts_digest = '' AND k.alias_of IS NULL;
    GET DIAGNOSTICS packed = ROW_COUNT;
    PERFORM set_config('statesvc.packing_keys', '', true);
END
$$;
REVOKE EXECUTE ON FUNCTION statesvc.pack_keys(text, text, int) FROM PUBLIC;
