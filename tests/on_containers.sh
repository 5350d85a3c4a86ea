#!/bin/sh
# Runs a command of tests on the Kafka and the Postgres of docker-compose.yml, which are removed when it ends.
set -eu

cd "$(dirname "$0")/.."
# Other ports than those of a stack that is being tried out.
export KAFKA_PORT=39092 POSTGRES_PORT=35432
compose() {
    docker compose --project-name waitreg-tests --file docker-compose.yml --file tests/containers.yml "$@"
}
trap 'compose down --volumes --timeout 10' EXIT
compose up --wait kafka postgres
export WAITREG_TEST_KAFKA="127.0.0.1:$KAFKA_PORT"
export WAITREG_TEST_POSTGRES="postgresql://postgres@127.0.0.1:$POSTGRES_PORT/postgres"
"$@"
