"""HTTP as all parts of the service speak it: routes with their contract, problems, keys, pages, health. Knows no domain."""
