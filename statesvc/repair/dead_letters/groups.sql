-- name: groups
-- The open letters by kind, cause and carrier, and of each group the details that occur most. Looks at the oldest `count_max` letters.
WITH letter AS MATERIALIZED (
    SELECT d.kind, d.cause, d.carrier_id, d.created_at, d.dead_letter_id,
        CASE WHEN d.kind = 'code' THEN concat_ws('/', d.raw_type, d.raw_code) ELSE d.detail END AS detail
    FROM statesvc.dead_letter d
    WHERE d.resolved_at IS NULL
        AND (%(kind)s::text IS NULL OR d.kind = %(kind)s)
        AND (%(carrier_id)s::text IS NULL OR d.carrier_id = %(carrier_id)s)
        AND (%(cause)s::text IS NULL OR d.cause = %(cause)s)
        AND (%(since)s::timestamptz IS NULL OR d.created_at >= %(since)s)
        AND (%(until)s::timestamptz IS NULL OR d.created_at < %(until)s)
    ORDER BY d.dead_letter_id LIMIT %(count_max)s
), detail AS (
    SELECT l.kind, l.cause, l.carrier_id, l.detail, count(*) AS letters,
        row_number() OVER (PARTITION BY l.kind, l.cause, l.carrier_id ORDER BY count(*) DESC, l.detail) AS place
    FROM letter l GROUP BY 1, 2, 3, 4
)
SELECT l.kind, l.cause, l.carrier_id, count(*) AS letters, min(l.created_at) AS oldest_at, max(l.created_at) AS newest_at,
    (array_agg(l.dead_letter_id ORDER BY l.dead_letter_id DESC))[1:%(examples_max)s::int] AS dead_letter_ids,
    (SELECT json_agg(json_build_object('detail', d.detail, 'letters', d.letters) ORDER BY d.place) FROM detail d
        WHERE d.kind = l.kind AND d.cause = l.cause AND d.carrier_id = l.carrier_id AND d.place <= %(details_max)s) AS details
FROM letter l GROUP BY 1, 2, 3 ORDER BY count(*) DESC, 1, 2, 3;
