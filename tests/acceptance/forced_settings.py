"""Settings that a role, a database or a platform may force on our sessions."""

PARSING = {
    "DateStyle": "German, DMY",
    "IntervalStyle": "iso_8601",
    "TimeZone": "Asia/Kolkata",
    "standard_conforming_strings": "off",
    "bytea_output": "escape",
    "extra_float_digits": "-5",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "quote_all_identifiers": "on",
    "client_encoding": "LATIN1",
    "exit_on_error": "on",
    "default_transaction_isolation": "serializable",
}
LIMITS = {
    "statement_timeout": "500ms",
    "lock_timeout": "100ms",
    "transaction_timeout": "2s",
    "idle_session_timeout": "10s",
    "idle_in_transaction_session_timeout": "1s",
}
