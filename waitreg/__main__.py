"""`python -m waitreg` is the command `waitreg`."""

from __future__ import annotations

import sys

from waitreg.cli import main

if __name__ == "__main__":
    sys.exit(main())
