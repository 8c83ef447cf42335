-- The newest head that a quorum of witnesses cosigned, beside it their lines and the second signature that it had; NULL: none yet.
-- It covers all entries before it, so older ones are not kept. `faults`: what went wrong when they were last asked.
CREATE TABLE statesvc.cosigned_head (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    tree_size bigint,
    second_signature text,
    cosignatures text,
    faults text[] NOT NULL,
    asked_at timestamptz NOT NULL
);
SELECT statesvc.sample_little('statesvc.cosigned_head');
