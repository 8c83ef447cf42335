-- name: code_dead_letter
-- Return the code that a dead letter is about.
SELECT d.carrier_id, d.raw_type, d.raw_code, d.resolution FROM statesvc.dead_letter d WHERE d.dead_letter_id = %(dead_letter_id)s AND d.kind = 'code';

-- name: has_mapping
-- Return whether any mapping in effect is about a listed code; `text` is any text in place of one. Of a mapping of some of its texts, or
-- with one of its reasons only, the reading of all events shows whether any is left.
SELECT EXISTS (
    SELECT FROM (
        SELECT DISTINCT ON (m.raw_type, m.raw_code, m.raw_reason, m.raw_text) m.*
        FROM statesvc.code_mapping m WHERE m.carrier_id = %(carrier_id)s
        ORDER BY m.raw_type, m.raw_code, m.raw_reason, m.raw_text, m.revision DESC
    ) m
    WHERE m.kind IS NOT NULL
        AND regexp_replace(m.raw_type, '^text-[a-z2-7]{26}$', 'text') IS NOT DISTINCT FROM %(raw_type)s::text
        AND regexp_replace(m.raw_code, '^text-[a-z2-7]{26}$', 'text') IS NOT DISTINCT FROM %(raw_code)s::text
);
