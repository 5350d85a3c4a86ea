#!/bin/sh
# Runs tests and prints the line coverage of the core and of each service, each of which must reach the limit by itself.
# Usage: coverage.sh BIN [what pytest is to run]. The status is 0 only when the tests passed and every limit is met.
set -u
bin=$1
shift

mkdir -p .waitreg/coverage
"$bin/coverage" erase
# A traced process takes longer: the limit is for tests that hang.
"$bin/coverage" run -m pytest -o timeout=600 "$@"
failed=$?
# A process killed while it began to write leaves an empty file.
find .waitreg/coverage -name 'data.*' -size 0 -delete
"$bin/coverage" combine --quiet || exit 1

"$bin/coverage" report || failed=1
printf '\nline coverage\n'
for package in wait_registry processor sink sweeper waitreg; do
    percent=$("$bin/coverage" report --include="$package/*" --format=total --precision=1)
    status=$?
    [ "$status" -eq 0 ] || failed=1
    printf '  %-14s %s %%%s\n' "$package" "$(printf '%s' "$percent" | head -n 1)" "$([ "$status" -eq 0 ] || echo '  too little')"
done
exit "$failed"
