-- name: numbers_beginning
-- Return the numbers that begin so, compared byte by byte: a range of the index of numbers.
SELECT s.number FROM statesvc.shipment s WHERE s.number ~>=~ %(since)s::text AND s.number ~<~ %(until)s::text LIMIT %(limit)s;

-- name: numbers_ending
-- Return the numbers whose last fifteen characters, read backwards, begin so. It reads the streams: their indexes are written once a
-- shipment.
SELECT t.number FROM statesvc.stream t
WHERE reverse(right(t.number, 15)) ~>=~ %(since)s::text AND reverse(right(t.number, 15)) ~<~ %(until)s::text LIMIT %(limit)s;
