-- What the append transaction asserts at its end, so that it need not wait for an answer before it commits.

-- Ends the transaction unless as many rows were written as were to be: another one was first. Trying it again then finds what that one
-- wrote.
CREATE FUNCTION statesvc.require_all(p_written bigint, p_wanted int) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF p_written <> p_wanted THEN
        RAISE EXCEPTION '% of % rows were written: another transaction was first', p_written, p_wanted USING ERRCODE = 'SS005';
    END IF;
END
$$;
