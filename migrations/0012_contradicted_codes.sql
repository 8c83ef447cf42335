-- A code has an open dead letter for each status that its texts state against it, and one where it is unknown.

-- squawk-ignore require-concurrent-index-creation
CREATE UNIQUE INDEX dead_letter_code_and_text ON statesvc.dead_letter (carrier_id, coalesce(raw_type, ''), coalesce(raw_code, ''), detail)
WHERE kind = 'code' AND resolved_at IS NULL; -- open codes are few: built within the time that one append holds its lock
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX statesvc.dead_letter_code;
