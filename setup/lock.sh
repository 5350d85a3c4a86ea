#!/bin/sh
# Locks every dependency with the SHA-256 of its files; where they come from stays the business of each user's pip.
set -eu

cd "$(dirname "$0")/.."
export CUSTOM_COMPILE_COMMAND="make lock"
options="--quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links
    --no-emit-trusted-host --no-emit-options"

# shellcheck disable=SC2086
.venv/bin/pip-compile $options --all-extras --output-file requirements.txt pyproject.toml
# Extras that name other extras make this project one of its own dependencies, at a path of this machine.
sed -i -e '/^# WARNING: pip install/,/^    # via/d' -e '/^    #   wait-registry$/d' requirements.txt
# The benchmark's peers, which have an environment of their own.
# shellcheck disable=SC2086
.venv/bin/pip-compile $options --output-file bench/peers.txt bench/peers.in
# What builds the one package that comes as source, at the same versions.
# shellcheck disable=SC2086
printf 'setuptools\nwheel\n' | .venv/bin/pip-compile $options --constraint requirements.txt \
    --output-file requirements-build.txt -
