-- name: write
-- Write what this process acknowledged in each minute so far. Whole counts, not what came since: written twice they are the same.
INSERT INTO statesvc.ack_count AS t (carrier_id, minute, process, accepted, duplicates, refused, last_at)
SELECT u.carrier_id, u.minute, %(process)s, u.accepted, u.duplicates, u.refused, u.last_at
FROM unnest(%(carrier_ids)b::text[], %(minutes)b::timestamptz[], %(accepted)b::int[], %(duplicates)b::int[], %(refused)b::int[],
    %(last_ats)b::timestamptz[]) AS u(carrier_id, minute, accepted, duplicates, refused, last_at)
ON CONFLICT (carrier_id, minute, process) DO UPDATE
SET accepted = greatest(t.accepted, excluded.accepted), duplicates = greatest(t.duplicates, excluded.duplicates),
    refused = greatest(t.refused, excluded.refused), last_at = greatest(t.last_at, excluded.last_at);
