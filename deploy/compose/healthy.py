"""Health of the container: is its service ready? Prints what it answered. An argument names the port.

Sockets alone, because it runs every few seconds and an HTTP library would be most of its work.
"""

from __future__ import annotations

import os
import socket
import sys

LIMIT_S = 2.0
OK = b" 200 "


def main() -> int:
    """Return 0 when /health/ready answers 200, 1 otherwise."""
    port = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("WAITREG_TELEMETRY__PORT") or 9464)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as connection:
            connection.sendall(b"GET /health/ready HTTP/1.0\r\nHost: localhost\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
    except OSError as problem:
        print(f"no answer on port {port}: {problem}")
        return 1
    head, _, body = answer.partition(b"\r\n\r\n")
    print(body.decode("utf-8", "replace").strip())
    return 0 if OK in head.split(b"\r\n", 1)[0] else 1


if __name__ == "__main__":
    sys.exit(main())
