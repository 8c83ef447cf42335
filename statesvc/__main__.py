"""The command `statesvc`, and `python -m statesvc`."""

import sys


def main() -> int:
    """Run the command line.

    A Ctrl-C that comes while it is being loaded is reported as any other.
    """
    try:
        from statesvc.cli import main as run  # noqa: PLC0415 - loading it can be interrupted, too

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("statesvc: interrupted\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
