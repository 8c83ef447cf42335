-- Streams with nothing but a key go when the last message that named them has expired.

-- Forgets at most `p_limit` of them; answers how many rows it settled. A body is there as long as its day's partition, an archive that has
-- not expired, or a retained copy is. Naming a stream again moves its `named_at`, which a deletion that waited for it sees.
CREATE FUNCTION statesvc.forget_named_streams(p_limit int) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET timezone = 'UTC' AS $$
DECLARE
    v_horizon timestamptz;
    v_settled bigint;
    v_count bigint;
BEGIN
    SELECT min(p.day)::timestamptz INTO v_horizon FROM (
        SELECT to_date(right(c.relname, 8), 'YYYYMMDD') AS day FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'statesvc.body'::regclass
        UNION ALL
        SELECT a.day FROM statesvc.body_archive a WHERE a.dropped_at IS NOT NULL AND a.expired_at IS NULL
    ) p;
    -- those that became shipments, or were erased, stay
    UPDATE statesvc.stream s SET named_at = NULL WHERE s.shipment_id = ANY (ARRAY(
        SELECT n.shipment_id FROM statesvc.stream n
        WHERE n.named_at < v_horizon AND (n.version > 0 OR n.erased_at IS NOT NULL) LIMIT p_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_settled = ROW_COUNT;
    DELETE FROM statesvc.stream s WHERE s.version = 0 AND s.erased_at IS NULL AND s.named_at < v_horizon AND s.shipment_id = ANY (ARRAY(
        SELECT n.shipment_id FROM statesvc.stream n
        WHERE n.named_at < v_horizon AND n.version = 0 AND n.erased_at IS NULL
            AND NOT EXISTS (SELECT FROM statesvc.body_retained k JOIN statesvc.message m ON m.message_id = k.message_id
                WHERE n.shipment_id = ANY (m.shipments))
        LIMIT p_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_settled + v_count;
END
$$;
REVOKE EXECUTE ON FUNCTION statesvc.forget_named_streams(int) FROM PUBLIC;
