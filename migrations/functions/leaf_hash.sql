-- The leaf hash of the entry at `p_ordinal` of a batch: it stands there alone.
CREATE FUNCTION statesvc.leaf_hash(p_leaf_hashes bytea, p_ordinal int) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN substr(p_leaf_hashes, 32 * p_ordinal + 1, 32);
