#!/bin/sh
# Stands in for kafka-acls: a word a line, an empty line after each call.
printf '%s\n' "$@" ''
