"""Check the connectors of the arguments and create them with Kafka Connect's REST API, one after the other.

What `curl -X PUT` does outside of this image, which has no curl. A second run changes nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

BUSY_S = 60.0
POLL_S = 0.5
REQUEST_S = 60.0
# A worker that starts answers 404, one that expects a rebalance 500, one that is in it 409.
BUSY = (404, 409, 500)


def put(url: str, config: bytes) -> None:
    """Create a connector or change it; wait while the workers divide the connectors, or a worker restarts."""
    deadline = time.monotonic() + BUSY_S
    while True:
        request = urllib.request.Request(url, config, {"Content-Type": "application/json"}, method="PUT")
        try:
            urllib.request.urlopen(request, timeout=REQUEST_S).close()
            return
        except urllib.error.HTTPError as refused:
            with refused:
                said = f"answered {refused.code}: {refused.read().decode('utf-8', 'replace')}"
            busy = refused.code in BUSY
        except OSError as error:
            said, busy = f"doesn't answer: {error}", True
        if not busy or time.monotonic() > deadline:
            raise SystemExit(f"{url} {said}")
        time.sleep(POLL_S)


def main(connectors: list[str]) -> None:
    """Create the connectors in this order; the sinks come before the sources."""
    for given in connectors:
        # Its variables are settings of this container; it says why if it refuses a connector.
        if subprocess.run(["waitreg", "connect", "check", given], check=False).returncode:
            raise SystemExit(1)
        config = subprocess.run(["waitreg", "connect", "print", given], check=True, capture_output=True).stdout
        put(f"{os.environ['WAITREG_CONNECT__URL']}/connectors/{json.loads(config)['name']}/config", config)


if __name__ == "__main__":
    main(sys.argv[1:])
