-- part: batches
FROM statesvc.sealed_batch s
WHERE s.first_index >= coalesce((SELECT max(p.first_index) FROM statesvc.sealed_batch p WHERE p.first_index <= %(begin)s), 0)
    AND s.first_index < %(end)s

-- part: page
WITH page AS (
    SELECT s.first_index, s.batch_id, s.recorded_from, s.recorded_to, s.sealed_at, greatest(%(begin)s - s.first_index, 0) AS low, %(end)s - s.first_index AS high
    {batches}
)

-- name: recorded_span
-- Return from when to when the entries from index `begin` up to but not including `end` were recorded, with the rest of their batches.
SELECT min(s.recorded_from), max(s.recorded_to) {batches};

-- name: entries
-- Return the entries from index `begin` up to but not including `end`, all recorded from `since` until `until`: by these the planner leaves
-- out all other partitions, by those of each batch it could not. OFFSET 0 keeps it one lookup a batch, whatever the planner thinks of the
-- tables. One row of columns: row by row they come in pieces of 8 kB, and the reader is woken for each.
{page}
SELECT array_agg(page.first_index + e.ordinal ORDER BY page.first_index + e.ordinal),
    array_agg(e.kind ORDER BY page.first_index + e.ordinal),
    array_agg(e.canonical ORDER BY page.first_index + e.ordinal),
    array_agg(page.sealed_at ORDER BY page.first_index + e.ordinal)
FROM page
CROSS JOIN LATERAL (
    SELECT 'event' AS kind, v.ordinal, v.canonical FROM statesvc.event v
    WHERE v.batch_id = page.batch_id AND v.ordinal >= page.low AND v.ordinal < page.high
        AND v.recorded_at BETWEEN page.recorded_from AND page.recorded_to AND v.recorded_at BETWEEN %(since)s AND %(until)s
    UNION ALL
    SELECT 'conflict', c.ordinal, c.canonical FROM statesvc.conflict c
    WHERE c.batch_id = page.batch_id AND c.ordinal >= page.low AND c.ordinal < page.high
        AND c.recorded_at BETWEEN page.recorded_from AND page.recorded_to AND c.recorded_at BETWEEN %(since)s AND %(until)s
    UNION ALL
    SELECT 'transition', t.ordinal, t.canonical FROM statesvc.transition t
    WHERE t.batch_id = page.batch_id AND t.ordinal >= page.low AND t.ordinal < page.high
        AND t.recorded_at BETWEEN page.recorded_from AND page.recorded_to AND t.recorded_at BETWEEN %(since)s AND %(until)s
    UNION ALL
    SELECT 'fanout', f.ordinal, f.canonical FROM statesvc.fanout f
    WHERE f.batch_id = page.batch_id AND f.ordinal >= page.low AND f.ordinal < page.high
        AND f.recorded_at BETWEEN page.recorded_from AND page.recorded_to AND f.recorded_at BETWEEN %(since)s AND %(until)s
    UNION ALL
    SELECT 'attempt', a.ordinal, a.canonical FROM statesvc.attempt a
    WHERE a.batch_id = page.batch_id AND a.ordinal >= page.low AND a.ordinal < page.high
        AND a.recorded_at BETWEEN page.recorded_from AND page.recorded_to AND a.recorded_at BETWEEN %(since)s AND %(until)s
    UNION ALL
    SELECT 'observation', b.ordinal, b.canonical FROM statesvc.observation b
    WHERE b.batch_id = page.batch_id AND b.ordinal >= page.low AND b.ordinal < page.high
        AND b.recorded_at BETWEEN page.recorded_from AND page.recorded_to AND b.recorded_at BETWEEN %(since)s AND %(until)s
    UNION ALL
    SELECT 'action', o.ordinal, o.canonical FROM statesvc.action o
    WHERE o.batch_id = page.batch_id AND o.ordinal >= page.low AND o.ordinal < page.high
        AND o.recorded_at BETWEEN page.recorded_from AND page.recorded_to AND o.recorded_at BETWEEN %(since)s AND %(until)s
    OFFSET 0
) e;

-- name: transitions
-- Return the transitions among the entries from index `begin` up to but not including `end`, each with its event. `since`, `until` and
-- OFFSET 0 as in the feed; an event was recorded with its transition.
{page}
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
