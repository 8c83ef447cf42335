-- name: numbers_beginning
-- Numbers that begin so, compared byte by byte: a range of the index of numbers.
SELECT s.number FROM statesvc.shipment s WHERE s.number ~>=~ %(since)s::text AND s.number ~<~ %(until)s::text LIMIT %(limit)s;

-- name: numbers_ending
-- Numbers whose last fifteen characters begin so, read backwards. Of the streams: their indexes are written once a shipment.
SELECT t.number FROM statesvc.stream t
WHERE reverse(right(t.number, 15)) ~>=~ %(since)s::text AND reverse(right(t.number, 15)) ~<~ %(until)s::text LIMIT %(limit)s;
