#!/bin/sh
# Makes a schema registry available to the tests: Apicurio Registry, which speaks Confluent's API and runs on Java 17, put
# into .waitreg/tools by Maven. When it is there already, no network is used.
set -eu

cd "$(dirname "$0")/.."
tools=.waitreg/tools
# 3.3 needs Java 21.
version=3.0.9
sum=2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43

if [ -d "$tools/apicurio-registry" ]; then
    exit 0
fi
if ! command -v mvn >/dev/null 2>&1; then
    echo "wait-registry: no mvn here. Fix: install Apache Maven 3.8 or newer" >&2
    exit 2
fi
mkdir -p "$tools"
package=$(mktemp -d "$tools/package.XXXXXX")
trap 'rm -rf "$package"' EXIT

mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:copy "-DoutputDirectory=$PWD/$package" \
    "-Dartifact=io.apicurio:apicurio-registry-app:$version:tar.gz:all" >&2
archive=$package/apicurio-registry-app-$version-all.tar.gz
echo "$sum  $archive" | sha256sum --check --status || {
    echo "wait-registry: the schema registry that was fetched isn't the expected one (SHA-256)" >&2
    exit 1
}
mkdir "$package/apicurio-registry"
tar -xzf "$archive" -C "$package/apicurio-registry"
mv "$package/apicurio-registry" "$tools/apicurio-registry"
