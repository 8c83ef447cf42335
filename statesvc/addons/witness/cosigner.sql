-- name: keep_cosigned
-- Keep the head that a quorum cosigned in place of the one before.
INSERT INTO statesvc.cosigned_head (tree_size, second_signature, cosignatures, faults, asked_at)
VALUES (%(tree_size)s, %(second_signature)s, %(cosignatures)s, %(faults)s, statesvc.clock())
ON CONFLICT (one_row) DO UPDATE SET tree_size = excluded.tree_size, second_signature = excluded.second_signature,
    cosignatures = excluded.cosignatures, faults = excluded.faults, asked_at = excluded.asked_at;

-- name: keep_faults
-- Keep why the newest head has no quorum, beside the last one that has it.
INSERT INTO statesvc.cosigned_head (faults, asked_at) VALUES (%(faults)s, statesvc.clock())
ON CONFLICT (one_row) DO UPDATE SET faults = excluded.faults, asked_at = excluded.asked_at;

-- name: faults
-- Return what went wrong when the witnesses were last asked. Without a quorum they are asked again within minutes, so an old row is of a
-- quiet log, or of a setting that went.
SELECT unnest(faults) FROM statesvc.cosigned_head WHERE asked_at > statesvc.clock() - interval '1 hour';
