#!/bin/sh
# Makes mutmut available to `make mutation`, in .waitreg/tools/mutmut, outside the virtual environment and not locked with
# it: nothing of the product or of its tests needs it. When it is there already, no network is used.
set -eu

cd "$(dirname "$0")/.."
tools=.waitreg/tools/mutmut
version=3.8.1

[ -d "$tools/mutmut-$version.dist-info" ] || .venv/bin/python -m pip install --quiet --disable-pip-version-check \
    --only-binary :all: --upgrade --target "$tools" "mutmut==$version" >&2 || {
    echo "wait-registry: mutmut $version could not be installed" >&2
    exit 1
}
