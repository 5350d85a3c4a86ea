#!/bin/sh
# Makes .venv hold exactly what requirements.txt locks. When it does already, nothing is done and no network is used.
set -eu

cd "$(dirname "$0")/.."
venv=.venv
stamp=$venv/installed
log=$venv/install.log

wanted=$(cat pyproject.toml requirements-build.txt requirements.txt setup/environment.sh | cksum)
# The folder is part of it: a moved or copied environment still points to where it was made.
wanted="$wanted $(pwd -P)"

python=$(sh setup/prerequisites.sh)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && "$venv/bin/python" -c '' 2>/dev/null; then
    exit 0
fi

# pip, with its progress bars on a terminal, else a line for each package; everything is in the log.
install() {
    if [ -t 1 ]; then
        "$venv/bin/python" -m pip install --disable-pip-version-check "$@"
        return
    fi
    rm -f "$log.failed"
    { "$venv/bin/python" -m pip install --disable-pip-version-check "$@" 2>&1 || touch "$log.failed"; } |
        tee -a "$log" | awk '
            /^Collecting / { printf "  %s\n", $2; fflush(); next }
            /Downloading .*[0-9][0-9] MB|Building wheel|ERROR|rror:/ { print; fflush() }'
    if [ -f "$log.failed" ]; then
        echo "wait-registry: the installation failed; the end of $log:" >&2
        tail -n 20 "$log" >&2
        return 1
    fi
}

echo "wait-registry: making $venv with $python ($("$python" -V 2>&1)); the packages are about 700 MB, pyspark most of it"
if ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    "$python" -m venv --clear "$venv"
fi
rm -f "$stamp" "$log"
# The lock names every package. Without --no-deps, pip looks for the newest release of an extra such as coverage[toml].
# pyspark comes as source only. Its build gets the locked setuptools instead of whatever an isolated build would fetch.
install --require-hashes --no-deps -r requirements-build.txt
install --require-hashes --no-deps --no-build-isolation -r requirements.txt
install --no-deps --no-build-isolation --quiet -e .
echo "$wanted" >"$stamp"
