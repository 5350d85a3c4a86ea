#!/bin/sh
# Makes atheris (libFuzzer for Python) available to `make fuzz`, in .waitreg/tools/atheris, outside the virtual environment
# and not locked with it: nothing of the product or of its tests needs it. When it is there already, no network is used.
set -eu

cd "$(dirname "$0")/.."
tools=.waitreg/tools/atheris
python=.venv/bin/python

runs() { PYTHONPATH=$tools "$python" -c 'import atheris' >/dev/null 2>&1; }

if runs; then
    echo "$tools"
    exit 0
fi
mkdir -p "$tools"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --upgrade \
    --target "$tools" 'atheris>=3,<4' >&2 || {
    echo "wait-registry: atheris could not be installed. It comes as a wheel for Linux on x86-64 and CPython 3.11 to" \
        "3.13: run make fuzz on such a host" >&2
    exit 1
}
runs || {
    echo "wait-registry: the atheris that was fetched does not run here; see $tools" >&2
    exit 1
}
echo "$tools"
