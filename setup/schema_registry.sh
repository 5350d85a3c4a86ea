#!/bin/sh
# Makes a schema registry available to the tests: Apicurio Registry, which speaks Confluent's API and runs on Java 17, from
# Maven Central into .waitreg/tools. When it is there already, no network is used.
set -eu

cd "$(dirname "$0")/.."
tools=.waitreg/tools
# 3.3 needs Java 21.
version=3.0.9
sum=2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43
central=${MAVEN_CENTRAL:-https://repo1.maven.org/maven2}

if [ -d "$tools/apicurio-registry" ]; then
    exit 0
fi
mkdir -p "$tools"
package=$(mktemp -d "$tools/package.XXXXXX")
trap 'rm -rf "$package"' EXIT

curl --fail --silent --show-error --location --output "$package/registry.tar.gz" \
    "$central/io/apicurio/apicurio-registry-app/$version/apicurio-registry-app-$version-all.tar.gz" || {
    echo "wait-registry: the schema registry could not be fetched. Fix: set MAVEN_CENTRAL to a mirror that has it" >&2
    exit 1
}
echo "$sum  $package/registry.tar.gz" | sha256sum --check --status || {
    echo "wait-registry: the schema registry that was fetched isn't the expected one (SHA-256)" >&2
    exit 1
}
mkdir "$package/apicurio-registry"
tar -xzf "$package/registry.tar.gz" -C "$package/apicurio-registry"
mv "$package/apicurio-registry" "$tools/apicurio-registry"
