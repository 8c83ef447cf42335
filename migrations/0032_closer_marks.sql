-- Marks follow more closely: under a pinned xmin each claim walks what died above them.
--
-- An ingest is visible before it is flushed (docs/decisions/0024-visible-before-durable.md), so what it may take is its statement's second alone.
-- The mark of the leases is one row, so it may move every second; a lane's move costs a dead row for each carrier, and keeps its three.

DO $$
DECLARE
    v_claim constant regprocedure := 'statesvc.claim(text, int, interval, text, bigint, boolean, boolean, text[], boolean)';
    v_source text := pg_get_functiondef(v_claim);
    v_changes constant text[] := ARRAY[
        'v_margin constant interval := interval ''2 seconds'';', 'v_margin constant interval := interval ''1.5 seconds'';',
        'v_step constant interval := interval ''3 seconds'';',
        'v_step constant interval := interval ''3 seconds'';' || E'\n    v_lease_step constant interval := interval ''1 second'';',
        'v_lease_mark < v_now - v_margin - v_step', 'v_lease_mark < v_now - v_margin - v_lease_step',
        'v_mark > v_lease_mark + v_step', 'v_mark > v_lease_mark + v_lease_step',
        '-- What an ingest is allowed to take, its flush included.', '-- What an ingest is allowed to take until it is visible.'
    ];
BEGIN
    FOR n IN 1 .. cardinality(v_changes) BY 2 LOOP
        IF position(v_changes[n] IN v_source) = 0 THEN
            RAISE EXCEPTION 'statesvc.claim is not the one of 0028: it lacks "%"', v_changes[n];
        END IF;
        v_source := replace(v_source, v_changes[n], v_changes[n + 1]);
    END LOOP;
    EXECUTE v_source;
END
$$;
