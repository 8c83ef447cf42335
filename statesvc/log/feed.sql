-- name: recorded_span
-- Return from when to when the entries from index `begin` up to but not including `end` were recorded, with the rest of their batches.
SELECT min(s.recorded_from), max(s.recorded_to) FROM statesvc.sealed_batch s
WHERE s.first_index >= coalesce((SELECT max(p.first_index) FROM statesvc.sealed_batch p WHERE p.first_index <= %(begin)s), 0)
    AND s.first_index < %(end)s;

-- name: entries
-- Return the entries from index `begin` up to but not including `end`, all recorded from `since` until `until`: by these the planner leaves
-- out all other partitions, by those of each batch it could not. OFFSET 0 keeps it one lookup a batch, whatever the planner thinks of the
-- tables. One row of columns: row by row they come in pieces of 8 kB, and the reader is woken for each.
WITH page AS (
    SELECT s.first_index, s.batch_id, s.recorded_from, s.recorded_to, s.sealed_at, greatest(%(begin)s - s.first_index, 0) AS low, %(end)s - s.first_index AS high
    FROM statesvc.sealed_batch s
    WHERE s.first_index >= coalesce((SELECT max(p.first_index) FROM statesvc.sealed_batch p WHERE p.first_index <= %(begin)s), 0)
        AND s.first_index < %(end)s
)
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
