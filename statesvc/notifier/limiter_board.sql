-- name: publish
-- Publish what this notifier learned of its receivers, in the order of their ids.
INSERT INTO statesvc.limiter_state AS l
    (subscription_id, worker, updated_at, concurrency, in_flight, mean_latency_seconds, breaker, open_until)
SELECT u.subscription_id, %(worker)s, statesvc.clock(), u.concurrency, u.in_flight, u.mean_latency_seconds, u.breaker, u.open_until
FROM unnest(%(subscription_ids)b::uuid[], %(concurrencies)b::int[], %(in_flights)b::int[], %(mean_latencies)b::float8[],
    %(breakers)b::text[], %(open_untils)b::timestamptz[])
    AS u(subscription_id, concurrency, in_flight, mean_latency_seconds, breaker, open_until)
ORDER BY u.subscription_id
ON CONFLICT (subscription_id, worker) DO UPDATE SET
    updated_at = EXCLUDED.updated_at, concurrency = EXCLUDED.concurrency, in_flight = EXCLUDED.in_flight,
    mean_latency_seconds = EXCLUDED.mean_latency_seconds, breaker = EXCLUDED.breaker, open_until = EXCLUDED.open_until;

-- name: withdraw
-- Withdraw what this notifier has forgotten.
DELETE FROM statesvc.limiter_state WHERE worker = %(worker)s AND subscription_id = ANY (%(subscription_ids)b::uuid[]);

-- name: withdraw_all
-- Withdraw everything of a notifier that stops.
DELETE FROM statesvc.limiter_state WHERE worker = %(worker)s;

-- name: prune
-- Withdraw everything of notifiers that died.
DELETE FROM statesvc.limiter_state WHERE updated_at < statesvc.clock() - interval '1 hour';
