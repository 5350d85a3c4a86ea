#!/bin/sh
# Makes .waitreg/bench/peers hold exactly what bench/peers.txt locks: the Python peers of the benchmark, in an environment
# of their own. When it does already, nothing is done and no network is used. Prints the path of its Python.
# `make lock` locks bench/peers.in again.
set -eu

cd "$(dirname "$0")/.."
peers=.waitreg/bench/peers
stamp=$peers/installed
log=$peers/install.log

wanted=$(cat bench/peers.txt setup/bench_peers.sh | cksum)
# The folder is part of it: a moved or copied environment still points to where it was made.
wanted="$wanted $(pwd -P)"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && "$peers/bin/python" -c '' 2>/dev/null; then
    echo "$peers/bin/python"
    exit 0
fi

python=$(sh setup/prerequisites.sh)
echo "wait-registry: making $peers with $python; the packages are about 10 MB" >&2
mkdir -p "$peers"
"$python" -m venv --clear "$peers"
if ! "$peers/bin/python" -m pip install --disable-pip-version-check --quiet --require-hashes --no-deps --only-binary :all: \
    -r bench/peers.txt >"$log" 2>&1; then
    echo "wait-registry: the benchmark's peers could not be installed; the end of $log:" >&2
    tail -n 20 "$log" >&2
    exit 1
fi
echo "$wanted" >"$stamp"
echo "$peers/bin/python"
