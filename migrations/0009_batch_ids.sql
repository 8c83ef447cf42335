-- The sequence of batch ids belongs to its column, as an identity's does: so the catalog alone says which column each sequence of the
-- schema must be ahead of (functions/sequences.sql).
ALTER SEQUENCE statesvc.batch_id_seq OWNED BY statesvc.batch.batch_id;
