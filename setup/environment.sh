#!/bin/sh
# Makes .venv hold exactly what requirements.txt locks, from scratch when the lock or the folder is another one. When it
# does already, nothing is done and no network is used.
# With the argument "download", it only fetches the packages.
set -eu

cd "$(dirname "$0")/.."
venv=.venv
stamp=$venv/installed
log=$venv/install.log
packages=$venv/packages

wanted=$(cat pyproject.toml requirements-build.txt requirements.txt setup/environment.sh | cksum)
# The folder is part of it: a moved or copied environment still points to where it was made.
wanted="$wanted $(pwd -P)"

python=$(sh setup/prerequisites.sh)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && "$venv/bin/python" -c '' 2>/dev/null; then
    exit 0
fi

# pip, with its progress bars on a terminal, else a line for each package; everything is in the log.
pip() {
    command=$1
    shift
    if [ -t 1 ]; then
        "$venv/bin/python" -m pip "$command" --disable-pip-version-check "$@"
        return
    fi
    rm -f "$log.failed"
    { "$venv/bin/python" -m pip "$command" --disable-pip-version-check "$@" 2>&1 || touch "$log.failed"; } |
        tee -a "$log" | awk '
            /^Collecting / { printf "  %s\n", $2; fflush(); next }
            /Downloading .*[0-9][0-9] MB|Building wheel|ERROR|rror:/ { print; fflush() }'
    if [ -f "$log.failed" ]; then
        echo "wait-registry: the installation failed; the end of $log:" >&2
        tail -n 20 "$log" >&2
        return 1
    fi
}

# The lock names every package. Without --no-deps, pip looks for the newest release of an extra such as coverage[toml].
# pyspark comes as source only. Its build gets the locked setuptools instead of whatever an isolated build would fetch.
locked="--require-hashes --no-deps --no-build-isolation -r requirements.txt"
if [ "$(cat "$packages/complete" 2>/dev/null)" != "$wanted" ]; then
    echo "wait-registry: making $venv with $python ($("$python" -V 2>&1)); the packages are about 700 MB, pyspark most of it"
    "$python" -m venv --clear "$venv"
    pip install --require-hashes --no-deps -r requirements-build.txt
    # shellcheck disable=SC2086
    pip download $locked --dest "$packages"
    echo "$wanted" >"$packages/complete"
fi
if [ "${1:-}" = download ]; then
    exit 0
fi
echo "wait-registry: installing what was fetched"
# shellcheck disable=SC2086
pip install $locked --no-index --find-links "$packages"
pip install --no-deps --no-build-isolation --quiet -e .
rm -rf "$packages"
echo "$wanted" >"$stamp"
