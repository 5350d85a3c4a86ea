#!/bin/sh
# Instead of kafka-acls: a word per line, an empty line after each call.
printf '%s\n' "$@" ''
