-- name: by_category
-- Codes that were read only by their category and that no row maps: how often, of how many shipments, and the latest messages.
-- From the newest `count_max` such events that the index of codes gives.
WITH candidate AS MATERIALIZED (
    SELECT e.carrier_id, e.shipment_id, e.message_id, e.received_at, e.canonical FROM statesvc.event e
    WHERE (e.kind = 'unmapped' OR e.by_category) AND e.by_category AND e.kind <> 'correction' LIMIT %(count_max)s
), said AS (
    SELECT c.carrier_id, r.raw ->> 'type' AS raw_type, r.raw ->> 'code' AS raw_code, c.shipment_id, c.message_id, c.received_at
    FROM candidate c CROSS JOIN LATERAL (SELECT convert_from(c.canonical, 'UTF8')::jsonb -> 'raw' AS raw) r
), in_effect AS (
    SELECT DISTINCT ON (m.carrier_id, m.raw_type, m.raw_code) m.* FROM statesvc.code_mapping m
    ORDER BY m.carrier_id, m.raw_type, m.raw_code, m.revision DESC
)
SELECT s.carrier_id, s.raw_type, s.raw_code, count(*) AS events, count(DISTINCT s.shipment_id) AS shipments, min(s.received_at) AS since,
    (array_agg(s.message_id ORDER BY s.received_at DESC))[1:%(examples_max)s] AS message_ids
FROM said s
WHERE NOT EXISTS (SELECT FROM in_effect m WHERE m.kind IS NOT NULL AND m.carrier_id = s.carrier_id
    AND m.raw_type IS NOT DISTINCT FROM s.raw_type AND m.raw_code IS NOT DISTINCT FROM s.raw_code)
GROUP BY s.carrier_id, s.raw_type, s.raw_code
ORDER BY count(*) DESC, s.carrier_id, s.raw_type, s.raw_code;
