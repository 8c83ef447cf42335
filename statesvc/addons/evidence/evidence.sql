-- name: entries
-- Return every sealed entry about a shipment: what was said of it and against it, what we concluded, what we sent, what operators did. Its
-- events were recorded from `since` until `until`, all else before `month_end`: by these the planner leaves out all other partitions.
SELECT s.first_index + x.ordinal AS index, x.kind, x.canonical, x.sealed_part
FROM (
    SELECT 'event' AS kind, e.batch_id, e.ordinal, e.canonical, e.sealed_part
    FROM statesvc.event e WHERE e.shipment_id = %(shipment_id)s AND e.recorded_at BETWEEN %(since)s AND %(until)s
    UNION ALL
    SELECT 'conflict', c.batch_id, c.ordinal, c.canonical, c.sealed_part
    FROM statesvc.conflict c WHERE c.shipment_id = %(shipment_id)s
        AND c.recorded_at BETWEEN %(conflict_since)s AND %(conflict_until)s
    UNION ALL
    SELECT 'conflict', c.batch_id, c.ordinal, c.canonical, c.sealed_part
    FROM statesvc.conflict c WHERE c.claimed_shipment_id = %(shipment_id)s AND c.shipment_id <> %(shipment_id)s
        AND c.recorded_at BETWEEN %(conflict_since)s AND %(conflict_until)s
    UNION ALL
    SELECT 'transition', t.batch_id, t.ordinal, t.canonical, NULL
    FROM statesvc.transition t WHERE t.shipment_id = %(shipment_id)s AND t.recorded_at BETWEEN %(since)s AND %(until)s
    UNION ALL
    SELECT 'fanout', f.batch_id, f.ordinal, f.canonical, NULL
    FROM statesvc.fanout f WHERE f.shipment_id = %(shipment_id)s AND f.recorded_at >= %(since)s AND f.recorded_at < %(month_end)s
    UNION ALL
    SELECT 'observation', v.batch_id, v.ordinal, v.canonical, NULL
    FROM statesvc.observation v WHERE v.shipment_id = %(shipment_id)s AND v.recorded_at >= %(since)s AND v.recorded_at < %(month_end)s
    UNION ALL
    SELECT 'attempt', a.batch_id, a.ordinal, a.canonical, a.sealed_part
    FROM statesvc.attempt a WHERE a.shipment_id = %(shipment_id)s AND a.recorded_at >= %(since)s AND a.recorded_at < %(month_end)s
    UNION ALL
    SELECT 'action', o.batch_id, o.ordinal, o.canonical, NULL
    FROM statesvc.action o
    -- who read it, and who asked for evidence of it, is for the audit, not for the bank
    WHERE o.target = 'shipment ' || %(shipment_id)s::uuid AND o.verb NOT IN ('read_personal', 'read_personal_again', 'make_evidence')
        AND o.recorded_at >= %(acted_since)s AND o.recorded_at < %(month_end)s
) x
JOIN statesvc.sealed_batch s ON s.batch_id = x.batch_id
WHERE s.first_index + x.ordinal < %(size)s
ORDER BY 1;

-- name: messages
-- Return the messages that said it, with what opens their bodies.
SELECT m.message_id, m.received_at, m.carrier_id, m.shipments, m.sealed_key
FROM unnest(%(message_ids)b::uuid[], %(received_ats)b::timestamptz[]) AS u(message_id, received_at)
CROSS JOIN LATERAL (
    SELECT * FROM statesvc.message m WHERE m.message_id = u.message_id AND m.received_at = u.received_at LIMIT 1
) m
ORDER BY m.received_at, m.message_id;
