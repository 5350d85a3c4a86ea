"""`python -m bench.contenders.parallel_consumer --order unordered --kafka ...`: becomes the Java program."""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

from bench.contenders.parallel_consumer.flow import DEFAULT_HEAP, ORDERS, flow_command
from wait_registry.errors import ConfigurationError


def main() -> NoReturn:
    """Read what is ours and hand on the rest; ends with the status of a ConfigurationError when it can't be started."""
    program = "python -m bench.contenders.parallel_consumer"
    parser = argparse.ArgumentParser(prog=program, description=__doc__, allow_abbrev=False)
    parser.add_argument("--order", choices=ORDERS, default="unordered", help="what may run at once (unordered)")
    parser.add_argument("--heap", default=DEFAULT_HEAP, help=f"the JVM's -Xmx ({DEFAULT_HEAP})")
    ours, of_the_flow = parser.parse_known_args()
    try:
        command = flow_command(ours.order, heap=ours.heap)
    except ConfigurationError as problem:
        print(problem, file=sys.stderr)
        sys.exit(problem.exit_code)
    # Not a child: clock, CPU and memory are then the JVM's alone, and a signal reaches it.
    os.execv(command[0], [*command, *of_the_flow])


if __name__ == "__main__":
    main()
