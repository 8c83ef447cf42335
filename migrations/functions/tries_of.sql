-- The tries of an entry about a notification, from its columns: the one that delivered it, or those of its list. `sequence`: which
-- notification each was at. Its columns and not its row, so that no function stands on a table of the log.
CREATE FUNCTION statesvc.tries_of(
    p_sequence int, p_number int, p_outcome text, p_status_code smallint, p_duration_ms int, p_started_at timestamptz, p_tries jsonb
)
    RETURNS TABLE (sequence int, number int, outcome text, status_code int, duration_ms int, started_at timestamptz)
    LANGUAGE sql STABLE AS $$
    SELECT p_sequence, p_number, p_outcome, p_status_code::int, p_duration_ms, p_started_at WHERE p_tries IS NULL
    UNION ALL
    SELECT t.* FROM jsonb_to_recordset(p_tries)
        AS t(sequence int, number int, outcome text, status_code int, duration_ms int, started_at timestamptz)
$$;
