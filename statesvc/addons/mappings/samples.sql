-- name: samples
-- Return the events that an unknown code brought, or that were read by its category, the newest first; `text` is any text in place of a
-- code.
WITH candidate AS MATERIALIZED (
    SELECT e.shipment_id, e.event_id, e.message_id, e.recorded_at, e.canonical, e.sealed_part, e.raw_type, e.raw_code FROM statesvc.event e
    WHERE (e.kind = 'unmapped' OR e.by_category) AND e.kind <> 'correction' AND e.carrier_id = %(carrier_id)s
        AND (%(carrier_code)s::text IS NULL OR e.carrier_code ~>=~ %(carrier_code)s AND e.carrier_code ~<~ (%(carrier_code)s || '0'))
    LIMIT %(count_max)s
)
SELECT c.shipment_id, c.event_id, c.message_id, c.recorded_at, c.canonical, c.sealed_part, s.sealed_key
FROM candidate c JOIN statesvc.stream s ON s.shipment_id = c.shipment_id
WHERE regexp_replace(c.raw_type, '^text-[a-z2-7]{26}$', 'text') IS NOT DISTINCT FROM %(raw_type)s::text
    AND regexp_replace(c.raw_code, '^text-[a-z2-7]{26}$', 'text') IS NOT DISTINCT FROM %(raw_code)s::text
ORDER BY c.recorded_at DESC, c.shipment_id, c.event_id LIMIT %(limit)s;
