#!/bin/sh
# Permissions to create the topics (`waitreg topics create`) and to check them (`waitreg topics check`), for the setup
# user and not for the services. An administrator runs this script; it passes the arguments after the file's name to
# every kafka-acls:
#
#   PRINCIPAL=User:waitreg-setup sh deploy/kafka/topics.sh --bootstrap-server broker:9093 \
#       --command-config admin.properties
#
# WAIT_TOPIC, DEAD_LETTER_TOPICS (several with spaces) and OPERATIONS_TOPIC are by default those of the settings;
# INPUT_TOPICS those that `topics check` is to look at, REDELIVERY_TOPICS those of the groups, RETRY_TOPICS those of
# groups with processor.retry.delays.
set -eu
: "${PRINCIPAL:?who that is to the broker, e.g. User:waitreg-setup}"
WAIT_TOPIC=${WAIT_TOPIC:-waitreg.wait}
DEAD_LETTER_TOPICS=${DEAD_LETTER_TOPICS:-waitreg.dlq}
OPERATIONS_TOPIC=${OPERATIONS_TOPIC:-waitreg.operations}

allow() {
    "${KAFKA_ACLS:-kafka-acls}" "$@" --add --allow-principal "$PRINCIPAL"
}

for topic in $WAIT_TOPIC $DEAD_LETTER_TOPICS $OPERATIONS_TOPIC ${REDELIVERY_TOPICS:-} ${RETRY_TOPICS:-}; do
    allow "$@" --operation Create --operation Describe --operation DescribeConfigs --topic "$topic"
done
for topic in ${INPUT_TOPICS:-}; do
    allow "$@" --operation Describe --operation DescribeConfigs --topic "$topic"
done
