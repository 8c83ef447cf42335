-- The carriers that pushed plenty at this time yesterday and nothing for hours, with the time of the last push.
CREATE FUNCTION statesvc.silent_carriers() RETURNS TABLE (carrier_id text, silent_since timestamptz)
    LANGUAGE sql STABLE AS $$
    SELECT l.carrier_id, max(t.last_at)
    FROM statesvc.lane l
    JOIN statesvc.ack_count t ON t.carrier_id = l.carrier_id AND t.minute > statesvc.clock() - interval '29 hours'
    GROUP BY l.carrier_id
    HAVING max(t.last_at) < statesvc.clock() - interval '4 hours'
        AND sum(t.accepted + t.duplicates) FILTER (
            WHERE t.minute BETWEEN statesvc.clock() - interval '28 hours' AND statesvc.clock() - interval '24 hours') > 50
$$;
