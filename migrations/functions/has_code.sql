-- Whether the raw fields of an event in the log hold a code: type and code as they stand there, NULL where the carrier prints none; a
-- reason and the digest of a text, NULL for any. An event whose leaf does not say which text it has may have this one.
CREATE FUNCTION statesvc.has_code(raw_type text, raw_code text, raw_reason text, raw_text text, p_type text, p_code text, p_reason text, p_text text)
    RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN raw_type IS NOT DISTINCT FROM p_type AND raw_code IS NOT DISTINCT FROM p_code
        AND (p_reason IS NULL OR coalesce(raw_reason, '') = p_reason)
        AND (p_text IS NULL OR coalesce(raw_text, p_text) = p_text);
