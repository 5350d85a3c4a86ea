"""`python -m wait_registry` is the command `waitreg`."""

from __future__ import annotations

import sys

from wait_registry.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
