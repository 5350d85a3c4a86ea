#!/bin/sh
# Makes prometheus and promtool available to the tests: those on PATH if there are any, else those of Debian's package,
# put into .waitreg/tools without installing a service. Prints the folder that holds both. When they are there already,
# no network is used.
set -eu

cd "$(dirname "$0")/.."
tools=.waitreg/tools

has_both() { "$1/prometheus" --version >/dev/null 2>&1 && "$1/promtool" --version >/dev/null 2>&1; }

if found=$(command -v prometheus) && has_both "$(dirname "$found")"; then
    dirname "$found"
    exit 0
fi
if has_both "$tools"; then
    echo "$tools"
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-deb >/dev/null 2>&1; then
    echo "wait-registry: no prometheus and no apt-get here. Fix: install Prometheus 2.42 or newer, with promtool," \
        "and put both on PATH" >&2
    exit 2
fi

mkdir -p "$tools"
package=$(mktemp -d "$tools/package.XXXXXX")
trap 'rm -rf "$package"' EXIT

# apt as root drops to a user of its own, who may not be able to write here; that is a note, not a failure.
download() { (cd "$package" && apt-get download --quiet prometheus >&2); }

# A new machine has no package lists yet, an old one lists of versions that are gone.
if ! download && [ "$(id -u)" -eq 0 ]; then
    apt-get update --quiet >&2
    download || true
fi
if ! ls "$package"/prometheus_*.deb >/dev/null 2>&1; then
    echo "wait-registry: prometheus could not be fetched. Fix: sudo apt-get update, then make prometheus again" >&2
    exit 1
fi
dpkg-deb -x "$package"/prometheus_*.deb "$package/unpacked"
mv "$package/unpacked/usr/bin/prometheus" "$package/unpacked/usr/bin/promtool" "$tools/"
has_both "$tools" || {
    echo "wait-registry: the prometheus that was fetched does not run here; see $tools" >&2
    exit 1
}
echo "$tools"
