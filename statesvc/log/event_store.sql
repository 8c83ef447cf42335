-- name: known_keys
-- Return what the log holds under these dedupe keys. One probe a key: joined freely, the planner reads a small table whole, and goes on
-- with that plan while it grows.
SELECT k.carrier_id, k.event_id, k.shipment_id, k.facts_digest, k.attribute_digests, k.alias_of
FROM unnest(%(carrier_ids)b::text[], %(event_ids)b::text[]) AS u(carrier_id, event_id)
CROSS JOIN LATERAL (
    SELECT * FROM statesvc.event_key e WHERE e.carrier_id = u.carrier_id AND e.event_id = u.event_id LIMIT 1
) k;

-- name: read_streams
-- Return version and sealed key of these shipments, as far as they exist.
SELECT shipment_id, version, sealed_key FROM statesvc.stream WHERE shipment_id = ANY (%(shipment_ids)b::uuid[]);

-- name: read_packed_keys
-- Return the sets of those of these shipments whose dedupe keys were packed.
SELECT shipment_id, packed_keys, packed_values FROM statesvc.stream
WHERE shipment_id = ANY (%(shipment_ids)b::uuid[]) AND packed_keys IS NOT NULL;

-- name: limit_lock_waits
-- Limit how long this transaction waits for a lock.
SELECT set_config('lock_timeout', %(milliseconds)s::text, true);

-- name: lock_streams
-- Look at the heads of these shipments, as far as they exist, and lock them in their order, without those that another transaction holds.
SELECT shipment_id, version, head_hash, recorded_at, first_recorded_at, sealed_key, packed_keys, packed_values, parcel_id
FROM statesvc.stream WHERE shipment_id = ANY (%(shipment_ids)b::uuid[]) ORDER BY shipment_id FOR NO KEY UPDATE SKIP LOCKED;

-- name: reserve_streams
-- Reserve for this transaction alone those of these shipments that have no stream, without those that another transaction is making: an
-- insert would wait for one that is not committed. Advisory locks take shared memory, so their number is bounded. Materialised, because the
-- lock is to be taken for these rows, in their order, and for no other. With each, behind its lock, the shipments of other sources whose
-- parcel it stands for; NULL: another transaction has made its stream meanwhile.
WITH absent AS MATERIALIZED (
    SELECT u.shipment_id, row_number() OVER (ORDER BY u.shipment_id) AS place FROM unnest(%(shipment_ids)b::uuid[]) AS u(shipment_id)
    WHERE NOT EXISTS (SELECT FROM statesvc.stream s WHERE s.shipment_id = u.shipment_id)
    ORDER BY u.shipment_id
)
SELECT a.shipment_id, statesvc.sources_of_absent(a.shipment_id) FROM absent a
WHERE CASE WHEN a.place <= %(most)s THEN pg_try_advisory_xact_lock(uuid_hash_extended(a.shipment_id, 0)) ELSE NOT %(bounded)s END;

-- name: wait_for_streams
-- Wait in line for those of these shipments that exist.
SELECT shipment_id FROM statesvc.stream WHERE shipment_id = ANY (%(shipment_ids)b::uuid[]) ORDER BY shipment_id FOR NO KEY UPDATE;

-- name: wait_for_new_streams
-- Wait in line for those that another transaction is making.
WITH absent AS MATERIALIZED (
    SELECT u.shipment_id FROM unnest(%(shipment_ids)b::uuid[]) AS u(shipment_id)
    WHERE NOT EXISTS (SELECT FROM statesvc.stream s WHERE s.shipment_id = u.shipment_id)
    ORDER BY u.shipment_id LIMIT %(most)s
)
SELECT count(pg_advisory_xact_lock(uuid_hash_extended(a.shipment_id, 0))) FROM absent a;

-- name: make_streams
-- Make the reserved streams, with the heads that they have now; one without an event is named by a message.
WITH made AS (
    INSERT INTO statesvc.stream
        (shipment_id, carrier_id, number, discriminator, version, head_hash, recorded_at, first_recorded_at, sealed_key, named_at,
        parcel_id)
    SELECT u.shipment_id, u.carrier_id, u.number, u.discriminator, u.version, u.head_hash, u.recorded_at, u.first_recorded_at, u.sealed_key,
        u.named_at, u.parcel_id
    FROM unnest(%(shipment_ids)b::uuid[], %(carrier_ids)b::text[], %(numbers)b::text[], %(discriminators)b::text[], %(versions)b::int[],
        %(head_hashes)b::bytea[], %(recorded_ats)b::timestamptz[], %(first_recorded_ats)b::timestamptz[], %(sealed_keys)b::bytea[],
        %(named_ats)b::timestamptz[], %(parcel_ids)b::uuid[])
        AS u(shipment_id, carrier_id, number, discriminator, version, head_hash, recorded_at, first_recorded_at, sealed_key, named_at,
            parcel_id)
    ORDER BY u.shipment_id
    ON CONFLICT (shipment_id) DO NOTHING
    RETURNING 1
)
SELECT statesvc.require_all(count(*), %(wanted)s) FROM made;

-- name: name_streams
-- Put off the removal of locked streams that hold nothing but a key.
UPDATE statesvc.stream s SET named_at = greatest(s.named_at, u.named_at)
FROM unnest(%(shipment_ids)b::uuid[], %(named_ats)b::timestamptz[]) AS u(shipment_id, named_at)
WHERE s.shipment_id = u.shipment_id;

-- part: taken
INSERT INTO statesvc.event_key (carrier_id, event_id, shipment_id, facts_digest, attribute_digests, alias_of)
SELECT u.carrier_id, u.event_id, u.shipment_id, u.facts_digest, u.attribute_digests, u.alias_of
FROM unnest(%(carrier_ids)b::text[], %(event_ids)b::text[], %(shipment_ids)b::uuid[], %(facts_digests)b::bytea[],
    %(attribute_digests)b::bytea[], %(aliases_of)b::text[]) AS u(carrier_id, event_id, shipment_id, facts_digest, attribute_digests, alias_of)
ORDER BY u.carrier_id, u.event_id
ON CONFLICT (carrier_id, event_id) DO NOTHING

-- name: insert_keys
-- Take dedupe keys, all of them: one that another transaction took since it was asked for ends this one.
WITH taken AS (
    {taken}
    RETURNING 1
)
SELECT statesvc.require_all(count(*), %(wanted)s) FROM taken;

-- name: insert_aliases
-- Take the aliases of events that are free; the others stand for the same already.
{taken};

-- name: begin_batch
-- Return the wall clock under the locks just taken, the id of the batch, and the epoch of the log. The epoch is read straight from its
-- table: the lock of that lasts as long as the transaction, and a fork takes the table for itself. With it the rules of what is expected of
-- shipments: few rows, mostly none.
SELECT statesvc.clock(), statesvc.next_batch_id(), (SELECT max(e.epoch) FROM statesvc.log_epoch e),
    (SELECT jsonb_agg(jsonb_build_array(x.carrier_id, x.service, x.revision, x.rules) ORDER BY x.carrier_id COLLATE "C", x.service COLLATE "C")::text FROM statesvc.expectation_rules x);

-- name: count_conflicts
-- Count each contradiction as often as this batch has it; `seen` above that means that it has its entry already.
INSERT INTO statesvc.conflict_key AS c
    (carrier_id, event_id, facts_digest, shipment_id, claimed_shipment_id, recorded_at, seen, last_seen_at)
SELECT u.carrier_id, u.event_id, u.facts_digest, u.shipment_id, u.claimed_shipment_id, %(recorded_at)s, u.times, statesvc.clock()
FROM unnest(%(carrier_ids)b::text[], %(event_ids)b::text[], %(facts_digests)b::bytea[], %(shipment_ids)b::uuid[],
    %(claimed_shipment_ids)b::uuid[], %(times)b::int[]) AS u(carrier_id, event_id, facts_digest, shipment_id, claimed_shipment_id, times)
ORDER BY u.carrier_id, u.event_id, u.facts_digest
ON CONFLICT (carrier_id, event_id, facts_digest) DO UPDATE SET seen = c.seen + excluded.seen, last_seen_at = excluded.last_seen_at
RETURNING c.carrier_id, c.event_id, c.facts_digest, c.seen;

-- name: insert_events
-- Append events.
INSERT INTO statesvc.event
    (shipment_id, version, recorded_at, received_at, occurred_at, message_id, batch_id, ordinal, carrier_id, event_id, kind, status,
     carrier_code, raw_type, raw_code, raw_reason, raw_text, corrects, printed_number, occurred_offset_seconds, by_category, normalizer,
     canonical, sealed_part)
SELECT u.shipment_id, u.version, u.recorded_at, u.received_at, u.occurred_at, u.message_id, %(batch_id)s, u.ordinal - 1, u.carrier_id,
    u.event_id, u.kind, u.status, u.carrier_code, u.raw_type, u.raw_code, u.raw_reason, u.raw_text, u.corrects,
    u.printed_number, u.occurred_offset_seconds, u.by_category, u.normalizer, u.canonical, u.sealed_part
FROM unnest(%(shipment_ids)b::uuid[], %(versions)b::int[], %(recorded_ats)b::timestamptz[], %(received_ats)b::timestamptz[],
    %(occurred_ats)b::timestamptz[], %(message_ids)b::uuid[], %(carrier_ids)b::text[], %(event_ids)b::text[], %(kinds)b::text[],
    %(statuses)b::text[], %(carrier_codes)b::text[], %(raw_types)b::text[], %(raw_codes)b::text[], %(raw_reasons)b::text[],
    %(raw_texts)b::text[], %(corrects)b::text[], %(printed_numbers)b::text[], %(occurred_offsets)b::int[], %(by_categories)b::bool[], %(normalizers)b::text[],
    %(canonicals)b::bytea[], %(sealed_parts)b::bytea[])
    WITH ORDINALITY AS u(shipment_id, version, recorded_at, received_at, occurred_at, message_id, carrier_id, event_id, kind, status,
        carrier_code, raw_type, raw_code, raw_reason, raw_text, corrects, printed_number, occurred_offset_seconds, by_category, normalizer,
        canonical, sealed_part, ordinal);

-- name: insert_conflicts
-- Append conflicts, after `before` other entries of the batch.
INSERT INTO statesvc.conflict
    (shipment_id, claimed_shipment_id, recorded_at, message_id, batch_id, ordinal, carrier_id, event_id, facts_digest, canonical,
     sealed_part)
SELECT u.shipment_id, u.claimed_shipment_id, %(recorded_at)s, u.message_id, %(batch_id)s, %(before)s + u.ordinal - 1, u.carrier_id,
    u.event_id, u.facts_digest, u.canonical, u.sealed_part
FROM unnest(%(shipment_ids)b::uuid[], %(claimed_shipment_ids)b::uuid[], %(message_ids)b::uuid[], %(carrier_ids)b::text[],
    %(event_ids)b::text[], %(facts_digests)b::bytea[], %(canonicals)b::bytea[], %(sealed_parts)b::bytea[])
    WITH ORDINALITY AS u(shipment_id, claimed_shipment_id, message_id, carrier_id, event_id, facts_digest, canonical,
        sealed_part, ordinal);

-- name: insert_transitions
-- Append transitions, after `before` other entries of the batch.
INSERT INTO statesvc.transition
    (shipment_id, sequence, recorded_at, batch_id, ordinal, from_status, to_status, canonical)
SELECT u.shipment_id, u.sequence, u.recorded_at, %(batch_id)s, %(before)s + u.ordinal - 1, u.from_status, u.to_status, u.canonical
FROM unnest(%(shipment_ids)b::uuid[], %(sequences)b::int[], %(recorded_ats)b::timestamptz[], %(from_statuses)b::text[],
    %(to_statuses)b::text[], %(canonicals)b::bytea[])
    WITH ORDINALITY AS u(shipment_id, sequence, recorded_at, from_status, to_status, canonical, ordinal);

-- name: move_heads
-- Move the heads of the locked streams on, from the versions that were seen under the lock.
WITH moved AS (
    UPDATE statesvc.stream s
    SET version = u.version, head_hash = u.head_hash, recorded_at = u.recorded_at, first_recorded_at = u.first_recorded_at
    FROM unnest(%(shipment_ids)b::uuid[], %(seen)b::int[], %(versions)b::int[], %(head_hashes)b::bytea[], %(recorded_ats)b::timestamptz[],
        %(first_recorded_ats)b::timestamptz[]) AS u(shipment_id, seen, version, head_hash, recorded_at, first_recorded_at)
    WHERE s.shipment_id = u.shipment_id AND s.version = u.seen
    RETURNING 1
)
SELECT statesvc.require_all(count(*), %(wanted)s) FROM moved;

-- name: extend_streams
-- Note that something else about these shipments was recorded than their events, where that is in a later month than all before.
WITH behind AS MATERIALIZED (
    SELECT s.shipment_id FROM statesvc.stream s
    WHERE s.shipment_id = ANY (%(shipment_ids)b::uuid[])
        AND greatest(s.recorded_at, s.entries_until) < date_trunc('month', %(recorded_at)s::timestamptz, 'UTC')
    ORDER BY s.shipment_id FOR NO KEY UPDATE
)
UPDATE statesvc.stream s SET entries_until = %(recorded_at)s FROM behind b WHERE s.shipment_id = b.shipment_id;

-- name: shipments_of_messages
-- Return the shipments that these messages name, whenever they were received.
SELECT DISTINCT u.shipment_id FROM statesvc.message m CROSS JOIN unnest(m.shipments) AS u(shipment_id)
WHERE m.message_id = ANY (%(message_ids)b::uuid[]);

-- name: insert_batch
-- Write the batch row of this transaction.
INSERT INTO statesvc.batch (batch_id, recorded_from, recorded_to, entries, leaf_hashes, writer)
VALUES (%(batch_id)s, %(recorded_from)s, %(recorded_to)s, %(entries)s, %(leaf_hashes)b, %(writer)s);

-- name: read_events
-- Return the canonical bytes of these shipments' events, oldest first; nothing of them was recorded before `since`.
SELECT shipment_id, canonical FROM statesvc.event
WHERE shipment_id = ANY (%(shipment_ids)b::uuid[]) AND recorded_at >= %(since)s
ORDER BY shipment_id, version;

-- name: insert_actions
-- Append what an operator did, after `before` other entries of the batch.
INSERT INTO statesvc.action (recorded_at, batch_id, ordinal, actor, verb, target, canonical)
SELECT %(recorded_at)s, %(batch_id)s, %(before)s + u.ordinal - 1, u.actor, u.verb, u.target, u.canonical
FROM unnest(%(actors)b::text[], %(verbs)b::text[], %(targets)b::text[], %(canonicals)b::bytea[])
    WITH ORDINALITY AS u(actor, verb, target, canonical, ordinal);
