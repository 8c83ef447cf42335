-- name: ping
-- Does the server still answer?
SELECT 1;
