"""Log lines: one pipeline for structlog and stdlib logging, redacted as the very last step.

Also replaces Python's own output of an uncaught exception, because that quotes its text.
"""

import logging
import re
import sys
import threading
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from pathlib import PurePath
from types import FrameType, TracebackType
from typing import Any, Final, Literal, TextIO

import orjson
import structlog
from opentelemetry import trace
from structlog.dev import ConsoleRenderer
from structlog.typing import EventDict, Processor, WrappedLogger

from statesvc.database.sql_errors import advice, connection_cause
from statesvc.settings.service_settings import TelemetrySettings
from statesvc.telemetry import redaction
from statesvc.telemetry.colour import shows_colour

Format = Literal["json", "console"]
Level = Literal["debug", "info", "warning", "error"]

_LEVELS: Final[Mapping[Level, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_CLEARED: Final = "\r\x1b[K"
# Frames of the stack of a log call: the half is logging's own.
_FRAMES_MAX: Final = 16
_WARNED: Final = re.compile(r"(?P<file>[^\n]*):(?P<line>\d+): (?P<category>\w+):")
_PLACEHOLDER = re.compile(r"%(\(\w+\))?[-+ #0-9.*]*[a-zA-Z]")


def configure_logging(
    *,
    process: str,
    output_format: Format = "json",
    level: Level = "info",
    stream: TextIO | None = None,
) -> None:
    """Set up structlog, stdlib logging and the hooks for uncaught exceptions of this process.

    `process` names it in each line.
    """
    target = Output(stream)
    processors = pipeline(process, output_format, colors=shows_colour(target))
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *_: target,
        # tests and `up` configure again: a cached logger would go on writing to the old stream
        cache_logger_on_first_use=False,
    )
    logging.captureWarnings(capture=True)
    root = logging.getLogger()
    root.handlers[:] = [ForeignHandler(processors, target)]
    least = max(_LEVELS[level], logging.INFO)
    # it visits all loggers there are
    if root.level != least:
        root.setLevel(least)
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread
    sys.unraisablehook = _unraisable


def log_format(settings: TelemetrySettings) -> Format:
    """Settle `auto` for this process: console on a terminal, JSON elsewhere."""
    if settings.log_format == "auto":
        return "console" if sys.stderr.isatty() else "json"
    return settings.log_format


class Output:
    """Output of log lines: standard error as it is at the time of writing, unless a stream is
    given.

    A pipe that broke or a full disk loses lines; it must never stop the work that they report.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def isatty(self) -> bool:
        return self._target.isatty()

    def msg(self, line: str) -> None:
        """Write a line. Also under the names of the levels, as structlog calls it."""
        # ValueError: standard error may be closed already while the interpreter ends
        with suppress(OSError, ValueError):
            self._target.write(f"{line}\n")
            self._target.flush()

    debug = info = warning = error = critical = exception = msg

    @property
    def _target(self) -> TextIO:
        return self._stream if self._stream is not None else sys.stderr


def pipeline(process: str, output_format: Format, *, colors: bool = False) -> list[Processor]:
    """Return the steps of a line: fields, exceptions, redaction, renderer.

    Nothing may follow redaction.
    """
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(
            fmt="iso" if output_format == "json" else "%H:%M:%S", utc=True
        ),
        _name_process(process),
        add_trace_id,
        describe_exception,
        # last but the renderer: nothing that is added later may pass it by
        redact,
        _renderer(output_format, colors=colors),
    ]


def add_trace_id(_logger: WrappedLogger, _method: str, event_dict: EventDict) -> EventDict:
    """Add the line's trace if that is exported."""
    found = trace.get_current_span().get_span_context()
    if found.trace_flags.sampled:
        event_dict["trace_id"] = trace.format_trace_id(found.trace_id)
    return event_dict


def describe_exception(_logger: WrappedLogger, _method: str, event_dict: EventDict) -> EventDict:
    """Turn `exc_info` (true, an exception or a triple) into `error`: type and positions in the
    code, and say what helps.
    """
    info = event_dict.pop("exc_info", None)
    error: object = event_dict.get("error")
    match info:
        case BaseException():
            error = info
        case (_, BaseException() as second, _):
            error = second
        case None | False:
            pass
        case _:
            error = sys.exc_info()[1]
    if isinstance(error, BaseException):
        event_dict["error"] = redaction.describe(error)
        why = advice(error)
        if why is not None:
            event_dict.setdefault("why", why)
        cause = connection_cause(error)
        if cause is not None:
            event_dict.setdefault("cause", cause.value)
    elif isinstance(event_dict.get("error"), str):
        event_dict["error"] = redaction.mask_text(event_dict["error"])
    return event_dict


def redact(_logger: WrappedLogger, _method: str, event_dict: EventDict) -> EventDict:
    """Redact as the last step before the renderer: only listed keys with values of their shape go
    on.
    """
    return redaction.redact(event_dict)


class ForeignHandler(logging.Handler):
    """Sends a library's record through the same pipeline.

    Only the message template is logged, with numbers filled in and exceptions described: other
    arguments may be data. So may a message that is no constant in the code.
    """

    def __init__(self, processors: list[Processor], output: Output) -> None:
        super().__init__()
        self._processors = processors
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line; a record that cannot be rendered leaves a line about that."""
        try:
            event_dict: MutableMapping[str, Any] = {
                "event": _template(record),
                "logger": record.name,
            }
            if record.exc_info and record.exc_info[1] is not None:
                event_dict["exc_info"] = record.exc_info[1]
            line: Any = event_dict
            for processor in self._processors:
                line = processor(None, record.levelname.lower(), line)
        except Exception:  # noqa: BLE001 - a log line must never stop the work that it reports
            line = '{"level":"error","event":"log_line_lost"}'
        self._output.msg(line)


def _template(record: logging.LogRecord) -> str:
    text = str(record.msg)
    # a composed message may hold any value, and its arguments are in it already
    if not _is_in_the_code(text):
        return _withheld(record, text)
    arguments = record.args
    values = list(arguments.values()) if isinstance(arguments, Mapping) else list(arguments or ())
    for value in values:
        text = _PLACEHOLDER.sub(lambda _match, value=value: _argument(value), text, count=1)  # type: ignore[misc]
    return text


def _is_in_the_code(text: str) -> bool:
    """Return whether a caller, or the logger's callee, has this text as a constant."""
    # the stack without the cost of `inspect`
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    for _ in range(_FRAMES_MAX):
        if frame is None:
            break
        if any(type(constant) is str and constant == text for constant in frame.f_code.co_consts):
            return True
        frame = frame.f_back
    return False


def _withheld(record: logging.LogRecord, text: str) -> str:
    """Return the safe part of a composed message.

    Of asyncio's the first line, of a warning the category, else the place.
    """
    if record.name == "asyncio":
        return text.partition("\n")[0]
    warned = _WARNED.match(text) if record.name == "py.warnings" else None
    if warned is not None:
        return f"{warned['category']} at {PurePath(warned['file']).name}:{warned['line']}"
    return f"message withheld, of {PurePath(record.pathname).name}:{record.lineno}"


def _argument(value: object) -> str:
    match value:
        case bool() | float():
            return str(value)
        # counts and ports; a longer number may be a tracking number
        case int() if abs(value) < 10**6:
            return str(value)
        case BaseException():
            return redaction.describe(value)
        case _:
            return "…"


def _name_process(process: str) -> Processor:
    def add(_logger: WrappedLogger, _method: str, event_dict: EventDict) -> EventDict:
        event_dict["process"] = process
        return event_dict

    return add


def _renderer(output_format: Format, *, colors: bool) -> Processor:
    if output_format == "json":
        return lambda _logger, _method, event_dict: orjson.dumps(event_dict, default=repr).decode()
    short = ConsoleRenderer(colors=colors, pad_event_to=0, sort_keys=False)
    # on a terminal a progress line may stand there, which is drawn again
    begins = _CLEARED if colors else ""
    return lambda logger, method, event_dict: f"{begins}{short(logger, method, event_dict)}"


def _uncaught(
    kind: type[BaseException], error: BaseException, _traceback: TracebackType | None
) -> None:
    # a person stopped it, and needs no line about that
    if issubclass(kind, KeyboardInterrupt):
        return
    structlog.get_logger().error("uncaught_exception", exc_info=error)


def _uncaught_in_thread(arguments: threading.ExceptHookArgs) -> None:
    if arguments.exc_value is not None and not isinstance(arguments.exc_value, SystemExit):
        structlog.get_logger().error(
            "uncaught_exception", task="thread", exc_info=arguments.exc_value
        )


def _unraisable(arguments: "sys.UnraisableHookArgs") -> None:
    structlog.get_logger().error("unraisable_exception", exc_info=arguments.exc_value)
