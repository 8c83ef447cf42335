-- name: code_dead_letter
-- The code that a dead letter is about.
SELECT d.carrier_id, d.raw_type, d.raw_code, d.resolution FROM statesvc.dead_letter d WHERE d.dead_letter_id = %(dead_letter_id)s AND d.kind = 'code';

-- name: has_mapping
-- Whether the latest mapping of a code says how to read it. Of texts (`text`) never: which of them are mapped is seen by reading examples.
SELECT coalesce((SELECT m.kind IS NOT NULL FROM statesvc.code_mapping m
    WHERE m.carrier_id = %(carrier_id)s AND m.raw_type IS NOT DISTINCT FROM %(raw_type)s AND m.raw_code IS NOT DISTINCT FROM %(raw_code)s
    ORDER BY m.revision DESC LIMIT 1), false);
