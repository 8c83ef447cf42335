-- part: columns
s.shipment_id, s.carrier_id, s.tracking_number, s.discriminator, s.status, s.reason, s.status_since, s.terminal, s.flags, s.version,
    s.last_event_at, s.recorded_at, s.first_recorded_at, s.estimated_delivery, s.service, s.delivered_at, s.attempts, s.signed_by_event_id,
    t.sealed_key, t.head_hash, greatest(t.recorded_at, t.entries_until) AS last_entry_at, s.state

-- part: fits
(%(status)s::text IS NULL OR s.status = %(status)s) AND (%(reason)s::text IS NULL OR s.reason = %(reason)s)
    AND (%(carrier_id)s::text IS NULL OR s.carrier_id = %(carrier_id)s)
    AND (%(service)s::text IS NULL OR lower(s.service) = lower(%(service)s))
    AND (%(flag)s::text IS NULL OR %(flag)s = ANY (s.flags)) AND (%(statuses)s::text[] IS NULL OR s.status = ANY (%(statuses)s))

-- part: bounds
recorded_at > %(since)s::timestamptz AND recorded_at < %(before)s::timestamptz

-- part: later
(recorded_at, shipment_id) > (%(after_recorded_at)s::timestamptz, %(after_shipment_id)s::uuid) AND {bounds}
    ORDER BY recorded_at, shipment_id LIMIT %(scan_max)s

-- part: earlier
(recorded_at, shipment_id) < (%(after_recorded_at)s::timestamptz, %(after_shipment_id)s::uuid) AND {bounds}
    ORDER BY recorded_at DESC, shipment_id DESC LIMIT %(scan_max)s

-- name: list_shipments
-- Return a page of shipments, the longest unchanged first: one that changes while the pages are read moves to the end, and is not missed.
-- Looks at `scan_max` shipments at most, so that a filter which fits few of them costs no more than a full page. Open ones and those at
-- their end are two ranges of one index: a filter that means one of them never reads the other.
SELECT {columns}
FROM (
    (SELECT * FROM statesvc.shipment WHERE NOT terminal AND %(open)s AND {later})
    UNION ALL (SELECT * FROM statesvc.shipment WHERE terminal AND %(ended)s AND {later})
    ORDER BY recorded_at, shipment_id LIMIT %(scan_max)s
) s JOIN statesvc.stream t USING (shipment_id)
WHERE {fits}
ORDER BY s.recorded_at, s.shipment_id LIMIT %(limit)s;

-- name: scan_end
-- Return the last shipment that `list_shipments` may have looked at; none when it reached the end.
(SELECT recorded_at, shipment_id FROM statesvc.shipment WHERE NOT terminal AND %(open)s AND {later})
UNION ALL (SELECT recorded_at, shipment_id FROM statesvc.shipment WHERE terminal AND %(ended)s AND {later})
ORDER BY recorded_at, shipment_id OFFSET %(scan_max)s - 1 LIMIT 1;

-- name: list_newest_shipments
-- Return a page of shipments, the newest change first: one that changes while the pages are read moves to the beginning, and is not shown
-- again.
SELECT {columns}
FROM (
    (SELECT * FROM statesvc.shipment WHERE NOT terminal AND %(open)s AND {earlier})
    UNION ALL (SELECT * FROM statesvc.shipment WHERE terminal AND %(ended)s AND {earlier})
    ORDER BY recorded_at DESC, shipment_id DESC LIMIT %(scan_max)s
) s JOIN statesvc.stream t USING (shipment_id)
WHERE {fits}
ORDER BY s.recorded_at DESC, s.shipment_id DESC LIMIT %(limit)s;

-- name: newest_scan_end
-- Return the last shipment that `list_newest_shipments` may have looked at.
(SELECT recorded_at, shipment_id FROM statesvc.shipment WHERE NOT terminal AND %(open)s AND {earlier})
UNION ALL (SELECT recorded_at, shipment_id FROM statesvc.shipment WHERE terminal AND %(ended)s AND {earlier})
ORDER BY recorded_at DESC, shipment_id DESC OFFSET %(scan_max)s - 1 LIMIT 1;

-- name: list_shipments_of_numbers
-- Return a page of the shipments that bear these numbers, of one carrier or (NULL) of any, in either order: an index range of a few rows for
-- each. OFFSET 0: planned for each number anew, and to weigh a merge of the two tables the planner reads both ends of both keys.
SELECT {columns}
FROM unnest(%(carrier_ids)s::text[], %(numbers)s::text[]) AS r(carrier_id, number)
CROSS JOIN LATERAL (
    SELECT * FROM statesvc.shipment x WHERE x.number = r.number AND x.carrier_id = coalesce(r.carrier_id, x.carrier_id) AND {bounds} OFFSET 0) s
CROSS JOIN LATERAL (SELECT * FROM statesvc.stream WHERE shipment_id = s.shipment_id OFFSET 0) t
WHERE ((NOT s.terminal AND %(open)s) OR (s.terminal AND %(ended)s))
    AND CASE WHEN %(newest)s::boolean THEN (s.recorded_at, s.shipment_id) < (%(after_recorded_at)s::timestamptz, %(after_shipment_id)s::uuid)
        ELSE (s.recorded_at, s.shipment_id) > (%(after_recorded_at)s::timestamptz, %(after_shipment_id)s::uuid) END AND {fits}
ORDER BY CASE WHEN %(newest)s THEN s.recorded_at END DESC, CASE WHEN %(newest)s THEN s.shipment_id END DESC, s.recorded_at, s.shipment_id
LIMIT %(limit)s;

-- name: unchanged_since
-- Return the bound of what has been unchanged for this long by now.
SELECT statesvc.clock() - %(duration)s::interval;

-- name: last_scans
-- Return the last scans of these shipments, each by its event id: mostly the event that came last, so the index is read backwards. A
-- shipment was recorded from `sinces` until `untils`, all of them from `since` until `until`: other partitions are not looked at. None: it
-- is archived.
SELECT u.shipment_id, e.canonical
FROM unnest(%(shipment_ids)s::uuid[], %(event_ids)s::text[], %(sinces)s::timestamptz[], %(untils)s::timestamptz[])
    AS u(shipment_id, event_id, since, until)
CROSS JOIN LATERAL (
    SELECT o.canonical FROM statesvc.event o
    WHERE o.shipment_id = u.shipment_id AND o.recorded_at BETWEEN u.since AND u.until AND o.event_id = u.event_id
        AND o.recorded_at BETWEEN %(since)s::timestamptz AND %(until)s::timestamptz
    ORDER BY o.version DESC LIMIT 1
) e;

-- name: numbers_beginning
-- Return the numbers that begin so, compared byte by byte: a range of the index of numbers.
SELECT s.number FROM statesvc.shipment s WHERE s.number ~>=~ %(since)s::text AND s.number ~<~ %(until)s::text LIMIT %(limit)s;

-- name: numbers_ending
-- Return the numbers whose last fifteen characters, read backwards, begin so. It reads the streams: their indexes are written once a
-- shipment.
SELECT t.number FROM statesvc.stream t
WHERE reverse(right(t.number, 15)) ~>=~ %(since)s::text AND reverse(right(t.number, 15)) ~<~ %(until)s::text LIMIT %(limit)s;

-- name: lookup
-- Return the shipments that bear these numbers, by place, the latest of each number first; one of which nothing was said, but that
-- something is attached to or that is awaited, has the time of that alone; `terminal` says whether its hours are over. OFFSET 0: planned
-- for each number anew, whatever the tables held when it was prepared.
SELECT u.place, {columns}
FROM unnest(%(places)b::int[], %(numbers)b::text[], %(carrier_ids)b::text[]) AS u(place, number, carrier_id)
CROSS JOIN LATERAL (
    SELECT * FROM statesvc.shipment x WHERE x.number = u.number AND x.carrier_id = coalesce(u.carrier_id, x.carrier_id)
    ORDER BY x.last_event_at DESC, x.shipment_id LIMIT %(each)s) s
CROSS JOIN LATERAL (SELECT * FROM statesvc.stream WHERE shipment_id = s.shipment_id OFFSET 0) t
UNION ALL
SELECT u.place, NULL, r.carrier_id, r.number, NULL, NULL, NULL, NULL, r.never_heard, NULL, 0, NULL, r.at, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL
FROM unnest(%(places)b::int[], %(numbers)b::text[], %(carrier_ids)b::text[]) AS u(place, number, carrier_id)
CROSS JOIN LATERAL (
    SELECT o.carrier_id, o.number, max(o.at) AS at, bool_or(o.never_heard) AS never_heard FROM (
        SELECT x.carrier_id, x.number, x.changed_at AS at, false AS never_heard FROM statesvc.shipment_references x
        WHERE x.number = u.number AND x.sealed IS NOT NULL
        UNION ALL
        SELECT w.carrier_id, w.number, coalesce(w.observed_at, w.awaited_at), w.observed_at IS NOT NULL FROM statesvc.awaited_number w
        WHERE w.number = u.number
    ) o
    WHERE o.carrier_id = coalesce(u.carrier_id, o.carrier_id) GROUP BY o.carrier_id, o.number
) r
WHERE NOT EXISTS (SELECT FROM statesvc.shipment h WHERE h.number = r.number AND h.carrier_id = r.carrier_id);
