"""The schema, as plain SQL files that are applied in their order and never edited afterwards; see `statesvc.database.migrate`."""
