"""`python -m statesvc` is the command `statesvc`."""

import sys

from statesvc.cli import main

if __name__ == "__main__":
    sys.exit(main())
