-- name: sequences_behind
-- Return the sequences whose next value exists already, with their column, the next value and the highest one.
SELECT b.sequence_name, b.column_name, b.next_value, b.highest FROM statesvc.sequences_behind() b;
