"""Teaching of codes by operators: preview, mappings, and reading the history again."""
