-- The plans of the claim owe nothing to statistics.
--
-- A queue is empty when it is analyzed, and full a second later: planned for a few rows, a claim read and sorted a lane's whole backlog
-- (150 ms for 25,000 messages) until the next analyze. The right plan walks an index in its order and stops; it is the only one left.

ALTER FUNCTION statesvc.claim(text, int, interval, text, bigint, boolean, boolean, text[], boolean)
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_incremental_sort = off;
ALTER FUNCTION statesvc.next_due()
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_incremental_sort = off;
ALTER FUNCTION statesvc.throttled()
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_incremental_sort = off;
