from statesvc.telemetry.short_line import short_line


def test_lists_are_cut_and_texts_with_blanks_are_quoted() -> None:
    fields = {
        "event": "functions_applied",
        "process": "up",
        "timestamp": "2026-11-26T20:00:00Z",
        "files": list("abcde"),
        "why": "no room",
    }
    assert (
        short_line(fields, colour=False)
        == "20:00:00 up             functions_applied files='a, b, c and 2 more'  why='no room'"
    )


def test_warnings_and_errors_stand_out_in_colour() -> None:
    line = short_line(
        {
            "event": "child_died",
            "process": "up",
            "level": "error",
            "timestamp": "2026-11-26T20:00:00Z",
        },
        colour=True,
    )
    assert "\x1b[1;31mERROR\x1b[0m \x1b[1;31mchild_died\x1b[0m" in line
