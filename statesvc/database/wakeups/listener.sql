-- name: ping
-- Ask whether the server still answers.
SELECT 1;
