"""The schema of the database, as SQL.

A migration applies it in this order:

1. `NNNN_area.sql`: the tables, constraints, indexes and triggers of one area, in its final
   shape. Each is applied once.
2. `functions/`: what is only code, one file per group. Applied after the tables, and again when the
   file changes: what its last text made is then dropped, so write CREATE FUNCTION, whatever became
   of the signature. A database that a later release migrated keeps its functions.
3. `privileges.sql` and `privileges_auditor.sql`: who may do what. Granted by every migration.
4. The partitions that the coming weeks need.

`generated/schema.sql` shows what that makes. Nothing applies it: `python -m
tests.migrations.snapshot` writes it, and a test compares it.

A function that a table cannot exist without stands with the tables: the clock, trigger functions,
and what the numbered files call themselves. Every other function is repeatable. PL/pgSQL and quoted
SQL bodies find tables and functions when they run, so the files in `functions/` may call each
other; a body that PostgreSQL binds when it is created (RETURN, BEGIN ATOMIC) must not call a
function of another file there, because that file could then no longer be applied alone.

The numbered files of a release are never edited; a change is another one.
"""
