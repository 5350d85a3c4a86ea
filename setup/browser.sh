#!/bin/sh
# Makes Chromium available to the tests of the console: the one on PATH, else Debian's package, which root may install.
# Prints its path. When it is there already, no network is used.
set -eu

if found=$(command -v chromium) && "$found" --version >/dev/null 2>&1; then
    echo "$found"
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" -ne 0 ]; then
    echo "wait-registry: no chromium here. Fix: install Debian's package (sudo apt-get install chromium)," \
        "or another Chromium, and put it on PATH under that name" >&2
    exit 2
fi

# The fonts are those that a machine without a desktop lacks.
install() {
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends \
        chromium fonts-dejavu-core >&2
}

# A new machine has no package lists yet, an old one lists of versions that are gone.
if ! install; then
    apt-get update --quiet >&2
    install || {
        echo "wait-registry: chromium could not be installed; apt's messages above say why" >&2
        exit 1
    }
fi
found=$(command -v chromium) && "$found" --version >/dev/null || {
    echo "wait-registry: the chromium that was installed does not run here" >&2
    exit 1
}
echo "$found"
