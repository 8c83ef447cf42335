-- Replace the service's clock by one that can be moved. Owner only; for tests, never for a database that means anything.
CREATE TABLE IF NOT EXISTS statesvc.test_clock (shift interval NOT NULL);
INSERT INTO statesvc.test_clock SELECT '0' WHERE NOT EXISTS (SELECT FROM statesvc.test_clock);
GRANT SELECT ON statesvc.test_clock TO PUBLIC;
CREATE OR REPLACE FUNCTION statesvc.clock() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN clock_timestamp() + (SELECT t.shift FROM statesvc.test_clock AS t);
