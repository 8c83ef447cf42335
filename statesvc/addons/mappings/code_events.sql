-- name: next_of_log
-- Return the next `limit` events of the log above a place, and which of their messages hold the code; the place to go on from.
WITH page AS MATERIALIZED (
    SELECT p.batch_id, p.ordinal, p.message_id,
        CASE WHEN p.carrier_id <> %(carrier_id)s OR p.kind = 'correction' OR p.carrier_code IS DISTINCT FROM %(carrier_code)s::text
                AND %(carrier_code)s::text IS NOT NULL AND NOT starts_with(p.carrier_code, %(carrier_code)s::text || '/') THEN false
            ELSE statesvc.has_code(p.raw_type, p.raw_code, p.raw_reason, p.raw_text, %(raw_type)s, %(raw_code)s, %(raw_reason)s, %(raw_text)s) END AS has_code
    FROM (
        SELECT e.batch_id, e.ordinal, e.message_id, e.carrier_id, e.kind, e.carrier_code, e.raw_type, e.raw_code, e.raw_reason, e.raw_text FROM statesvc.event e
        WHERE (e.batch_id, e.ordinal) > (%(batch_id)s::bigint, %(ordinal)s::int) ORDER BY e.batch_id, e.ordinal LIMIT %(limit)s
    ) p
), last AS (
    SELECT p.batch_id, p.ordinal FROM page p ORDER BY p.batch_id DESC, p.ordinal DESC LIMIT 1
)
SELECT l.batch_id, l.ordinal, (SELECT count(*) FROM page),
    ARRAY(SELECT DISTINCT p.message_id FROM page p WHERE p.has_code ORDER BY p.message_id)
FROM last l;

-- name: events_with_code
-- Count the events with the code, and return the `newest` of them. Those that are unknown or were read by category are found by their index,
-- the others as far as the newest `searched_max` events of the log hold them.
WITH indexed AS MATERIALIZED (
    SELECT e.batch_id, e.ordinal, e.recorded_at, e.message_id, e.shipment_id, e.raw_type, e.raw_code, e.raw_reason, e.raw_text
    FROM statesvc.event e
    WHERE (e.kind = 'unmapped' OR e.by_category) AND e.kind <> 'correction' AND e.carrier_id = %(carrier_id)s
        AND (%(carrier_code)s::text IS NULL OR e.carrier_code ~>=~ %(carrier_code)s AND e.carrier_code ~<~ (%(carrier_code)s || '0'))
    LIMIT %(count_max)s
), searched AS MATERIALIZED (
    SELECT p.batch_id, p.ordinal, p.recorded_at, p.message_id, p.shipment_id,
        CASE WHEN p.carrier_id <> %(carrier_id)s OR p.kind IN ('correction', 'unmapped') OR p.by_category
                OR p.carrier_code IS DISTINCT FROM %(carrier_code)s::text AND %(carrier_code)s::text IS NOT NULL
                AND NOT starts_with(p.carrier_code, %(carrier_code)s::text || '/') THEN false
            ELSE statesvc.has_code(p.raw_type, p.raw_code, p.raw_reason, p.raw_text, %(raw_type)s, %(raw_code)s, %(raw_reason)s, %(raw_text)s) END AS has_code
    FROM (
        SELECT e.* FROM statesvc.event e ORDER BY e.batch_id DESC, e.ordinal DESC LIMIT %(searched_max)s
    ) p
), found AS MATERIALIZED (
    SELECT i.batch_id, i.ordinal, i.recorded_at, i.message_id, i.shipment_id FROM indexed i
    WHERE statesvc.has_code(i.raw_type, i.raw_code, i.raw_reason, i.raw_text, %(raw_type)s, %(raw_code)s, %(raw_reason)s, %(raw_text)s)
    UNION ALL
    SELECT s.batch_id, s.ordinal, s.recorded_at, s.message_id, s.shipment_id FROM searched s WHERE s.has_code
), counted AS (
    SELECT count(*) AS events, count(DISTINCT f.shipment_id) AS shipments, count(DISTINCT f.message_id) AS messages,
        (SELECT count(*) FROM indexed) AS indexed, (SELECT count(*) FROM searched) AS searched
    FROM found f
), chosen AS (
    SELECT f.batch_id, f.ordinal, f.recorded_at FROM found f ORDER BY f.batch_id DESC, f.ordinal DESC LIMIT %(newest)s
)
SELECT c.events, c.shipments, c.messages, c.indexed, c.searched,
    n.shipment_id, n.event_id, n.message_id, n.recorded_at, n.canonical, n.sealed_part, n.sealed_key
FROM counted c LEFT JOIN (
    SELECT e.batch_id, e.ordinal, e.shipment_id, e.event_id, e.message_id, e.recorded_at, e.canonical, e.sealed_part, s.sealed_key
    FROM chosen h JOIN statesvc.event e ON e.recorded_at = h.recorded_at AND e.batch_id = h.batch_id AND e.ordinal = h.ordinal
    JOIN statesvc.stream s ON s.shipment_id = e.shipment_id
) n ON true
ORDER BY n.batch_id DESC, n.ordinal DESC;

-- name: open_code_dead_letter
-- Return the open dead letter of a listed code.
SELECT d.dead_letter_id FROM statesvc.dead_letter d
WHERE d.kind = 'code' AND d.resolved_at IS NULL AND d.carrier_id = %(carrier_id)s
    AND d.raw_type IS NOT DISTINCT FROM %(raw_type)s::text AND d.raw_code IS NOT DISTINCT FROM %(raw_code)s::text;
