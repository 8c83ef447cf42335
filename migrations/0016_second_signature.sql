-- The ML-DSA-44 half of each log key, derived from the same seed (`NoteSigner.cosigner`). NULL: retired before there was one.
ALTER TABLE statesvc.signing_key ADD COLUMN cosigner bytea CONSTRAINT signing_key_cosigner_size CHECK (octet_length(cosigner) = 1312);

-- What that key signed of the newest head: a line beside the note, whose bytes 0.1.0 and time stamps take as they are.
CREATE TABLE statesvc.second_signature (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    tree_size bigint NOT NULL,
    line text NOT NULL
);
SELECT statesvc.sample_little('statesvc.second_signature'), statesvc.sample_little('statesvc.signing_key');
