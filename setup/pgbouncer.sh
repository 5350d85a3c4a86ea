#!/bin/sh
# Makes pgbouncer available to the tests of poolers: the one on PATH or in /usr/sbin, else Debian's package, which root
# may install. Prints its path. When it is there already, no network is used.
set -eu

PATH="$PATH:/usr/sbin"
if found=$(command -v pgbouncer); then
    echo "$found"
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" -ne 0 ]; then
    echo "wait-registry: no pgbouncer here. Fix: install Debian's package (sudo apt-get install pgbouncer)," \
        "or put another one on PATH" >&2
    exit 2
fi

# The package would start a service of the host's.
install() {
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends pgbouncer >&2
}

# A new machine has no package lists yet, an old one lists of versions that are gone.
if ! install; then
    apt-get update --quiet >&2
    install || {
        echo "wait-registry: pgbouncer could not be installed; apt's messages above say why" >&2
        exit 1
    }
fi
command -v pgbouncer
