-- name: streams_of_number
-- Return the shipments that bear a number.
SELECT shipment_id, discriminator FROM statesvc.stream
WHERE carrier_id = %(carrier_id)s AND number = %(number)s
    AND (%(discriminator)s::text IS NULL OR discriminator = %(discriminator)s)
ORDER BY shipment_id;

-- name: under_legal_hold
-- Return whether any of these shipments is under a legal hold.
SELECT statesvc.under_legal_hold(%(shipment_ids)s::uuid[]);

-- name: backups_expire
-- Return when the last backup that was made until now expires, and the last message has left the spools.
SELECT statesvc.clock() + greatest(make_interval(days => %(days)s),
    (SELECT make_interval(secs => max(s.held_seconds)) FROM statesvc.spool s));

-- name: destroy_key
-- Destroy a shipment's key, after an append that is under way; a later one finds no key, and seals nothing. A number that was never seen
-- gets a stream without one, so that what comes later leaves nothing personal either.
INSERT INTO statesvc.stream AS s
    (shipment_id, carrier_id, number, discriminator, version, head_hash, recorded_at, first_recorded_at, sealed_key, erased_at)
VALUES (%(shipment_id)s, %(carrier_id)s, %(number)s, %(discriminator)s, 0, decode(repeat('00', 32), 'hex'), 'epoch', 'epoch', NULL,
    statesvc.clock())
ON CONFLICT (shipment_id) DO UPDATE SET sealed_key = NULL, erased_at = statesvc.clock() WHERE s.sealed_key IS NOT NULL;

-- name: sealed_dead_letters
-- Return the messages of a carrier that wait for a human, or that were discarded, whose body still opens under the inbox key.
SELECT d.dead_letter_id, d.message_id, d.received_at, d.sealed_key FROM statesvc.dead_letter d
WHERE d.carrier_id = %(carrier_id)s AND d.sealed_key IS NOT NULL AND d.dead_letter_id > %(after)s
ORDER BY d.dead_letter_id LIMIT %(limit)s;

-- name: erase_dead_letters
-- Take the keys of these dead letters: their bodies are unreadable, so there is nothing left to replay.
UPDATE statesvc.dead_letter d
SET sealed_key = NULL, resolution = coalesce(d.resolution, 'discarded'), resolved_at = coalesce(d.resolved_at, statesvc.clock()),
    resolved_by = coalesce(d.resolved_by, %(actor)s), why = coalesce(d.why, 'its body names an erased shipment')
WHERE d.dead_letter_id = ANY (%(dead_letter_ids)s);

-- name: is_erased
-- Return whether the shipment has no key, for good.
SELECT EXISTS (SELECT FROM statesvc.stream s WHERE s.shipment_id = %(shipment_id)s AND s.erased_at IS NOT NULL);
