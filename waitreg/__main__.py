"""`python -m waitreg` is the command `waitreg`."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # `python -m` puts the current directory first, where a file such as sink.py would replace our package.
        sys.path.append(sys.path.pop(0))
    from waitreg.main import main

    sys.exit(main())
