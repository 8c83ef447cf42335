-- What the append transaction asks behind a lock within one statement, and what it asserts at its end, so that it need not wait for an answer
-- before it commits.

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

-- The shipments of other sources whose parcel this one stands for; NULL: it has a stream by now. For who has just reserved it: its statement
-- sees the log as it was before the lock, when who held that had not committed. VOLATILE, so this sees the log as it is behind the lock.
CREATE FUNCTION statesvc.sources_of_absent(p_shipment_id uuid) RETURNS uuid[]
    LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT ARRAY(SELECT o.shipment_id FROM statesvc.stream o WHERE o.parcel_id = p_shipment_id)
        WHERE NOT EXISTS (SELECT FROM statesvc.stream s WHERE s.shipment_id = p_shipment_id)
    );
END
$$;
