-- name: transitions
-- Return the transitions among the entries from index `begin` up to but not including `end`, each with its event. `since`, `until` and
-- OFFSET 0 as in the feed; an event was recorded with its transition.
WITH page AS (
    SELECT s.first_index, s.batch_id, s.recorded_from, s.recorded_to, greatest(%(begin)s - s.first_index, 0) AS low,
        %(end)s - s.first_index AS high
    FROM statesvc.sealed_batch s
    WHERE s.first_index >= coalesce((SELECT max(p.first_index) FROM statesvc.sealed_batch p WHERE p.first_index <= %(begin)s), 0)
        AND s.first_index < %(end)s
)
SELECT t.log_index, e.carrier_id, e.number, t.from_status, t.to_status, e.occurred_at, e.occurred_offset_seconds, t.sequence, t.recorded_at
FROM (
    SELECT page.first_index + m.ordinal AS log_index, m.*
    FROM page
    CROSS JOIN LATERAL (
        SELECT i.* FROM statesvc.transition i
        WHERE i.batch_id = page.batch_id AND i.ordinal >= page.low AND i.ordinal < page.high
            AND i.recorded_at BETWEEN page.recorded_from AND page.recorded_to AND i.recorded_at BETWEEN %(since)s AND %(until)s
        OFFSET 0
    ) m
) t
LEFT JOIN LATERAL (
    SELECT v.carrier_id, coalesce(v.printed_number, k.number) AS number, v.occurred_at, v.occurred_offset_seconds FROM statesvc.event v
    JOIN statesvc.stream k ON k.shipment_id = v.shipment_id
    WHERE v.shipment_id = t.shipment_id AND v.version = t.sequence AND v.recorded_at = t.recorded_at
        AND v.recorded_at BETWEEN %(since)s AND %(until)s
    OFFSET 0
) e ON true
ORDER BY 1;

-- name: batch_begin
-- Return where the batch begins that has the entry at this index.
SELECT coalesce(max(s.first_index), %(begin)s) FROM statesvc.sealed_batch s WHERE s.first_index <= %(begin)s;
