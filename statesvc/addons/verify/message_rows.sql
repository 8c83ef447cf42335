-- name: may_read
-- Return whether the role that asks may read which messages and bodies there are.
SELECT has_table_privilege('statesvc.message', 'SELECT') AND has_table_privilege('statesvc.body', 'SELECT')
    AND has_table_privilege('statesvc.body_retained', 'SELECT');

-- name: messages
-- Return those of these messages that have their verdict. Bounded by time, so that few partitions are read.
SELECT m.message_id::text FROM statesvc.message m
WHERE m.message_id = ANY (%(message_ids)s::uuid[])
    AND m.received_at BETWEEN '2000-01-01+00'::timestamptz + %(since)s::bigint * interval '1 microsecond'
    AND '2000-01-01+00'::timestamptz + %(until)s::bigint * interval '1 microsecond';

-- name: bodies
-- Return the commitments of those of these messages' bodies that are in the database.
SELECT b.message_id::text, b.commitment FROM statesvc.body b
WHERE b.message_id = ANY (%(message_ids)s::uuid[])
    AND b.received_at BETWEEN '2000-01-01+00'::timestamptz + %(since)s::bigint * interval '1 microsecond'
    AND '2000-01-01+00'::timestamptz + %(until)s::bigint * interval '1 microsecond'
UNION ALL
SELECT k.message_id::text, k.commitment FROM statesvc.body_retained k WHERE k.message_id = ANY (%(message_ids)s::uuid[]);

-- name: left
-- Return of messages that have no verdict or no body here whether each may have left: its bodies expired, or its day is archived.
SELECT u.message_id::text,
    to_regclass('statesvc.message_' || to_char(u.received, 'YYYYMM')) IS NULL OR a.expired_at IS NOT NULL,
    to_regclass('statesvc.body_' || to_char(u.received, 'YYYYMMDD')) IS NULL OR a.dropped_at IS NOT NULL
FROM (SELECT m.message_id, ('2000-01-01'::timestamp + m.received_at * interval '1 microsecond') AS received
    FROM unnest(%(message_ids)s::uuid[], %(received_ats)s::bigint[]) AS m(message_id, received_at)) u
LEFT JOIN statesvc.body_archive a ON a.day = u.received::date;

-- name: renamed_streams
-- Return the shipments whose carrier, number or discriminator is not what their id is made of.
SELECT s.shipment_id::text FROM statesvc.stream s
WHERE s.shipment_id <> encode(substr(sha256(convert_to(
    concat_ws(chr(31), 's1', s.carrier_id, s.number, s.discriminator), 'UTF8')), 1, 16), 'hex')::uuid
LIMIT %(most)s;
