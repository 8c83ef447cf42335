-- name: rewrap
-- The same key under a newer version of the KMS's.
UPDATE statesvc.root_key SET wrapped = %(new)b, wrapped_at = statesvc.clock() WHERE kms = %(kms)s AND wrapped = %(old)b;
