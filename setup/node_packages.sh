#!/bin/sh
# Makes npm packages available to the tests: what tests/support/NAME/package-lock.json locks, in .waitreg/tools/NAME.
# When they are there already, no network is used.
set -eu

cd "$(dirname "$0")/.."
name=$1
source=tests/support/$name
place=.waitreg/tools/$name

if cmp -s "$source/package-lock.json" "$place/installed"; then
    exit 0
fi
if ! command -v npm >/dev/null 2>&1; then
    echo "wait-registry: no npm here. Fix: install Node 20 or newer with npm" >&2
    exit 2
fi
mkdir -p "$place"
cp "$source/package.json" "$source/package-lock.json" "$place"
npm ci --prefix "$place" --ignore-scripts --no-audit --no-fund >&2
cp "$source/package-lock.json" "$place/installed"
