#!/bin/sh
# What the sweeper may do in Kafka, and nothing else. Run by an administrator; what follows the file's name is
# given to every kafka-acls:
#
#   PRINCIPAL=User:waitreg-sweeper \
#       sh deploy/kafka/sweeper.sh --bootstrap-server broker:9093 --command-config admin.properties
#
# WAIT_TOPIC is by default that of the settings. DEAD_LETTER_TOPICS (with spaces) are those of every group, by default
# one; REDELIVERY_TOPICS those of the groups that want expired records again. With CONSUMER_GROUPS, the processors'
# groups, it can warn of processors that count on another wait.skew_allowance_s; it works without.
set -eu
: "${PRINCIPAL:?who it is to the broker, e.g. User:waitreg-sweeper}"
WAIT_TOPIC=${WAIT_TOPIC:-waitreg.wait}
DEAD_LETTER_TOPICS=${DEAD_LETTER_TOPICS:-waitreg.dlq}

allow() {
    "${KAFKA_ACLS:-kafka-acls}" "$@" --add --allow-principal "$PRINCIPAL"
}

# The tail is read, tombstones are written.
allow "$@" --operation Read --operation Write --operation DescribeConfigs --topic "$WAIT_TOPIC"
for topic in $DEAD_LETTER_TOPICS ${REDELIVERY_TOPICS:-}; do
    allow "$@" --operation Write --operation DescribeConfigs --topic "$topic"
done
# The client that reads the tail has a group's name and asks for it; it neither joins nor commits.
allow "$@" --operation Describe --group "waitreg.sweep.$WAIT_TOPIC"
# One ID per partition of the wait topic: with it sweepers fence one another. Give it to no other client.
allow "$@" --operation Write --resource-pattern-type prefixed --transactional-id "waitreg.sweep.$WAIT_TOPIC."
for group in ${CONSUMER_GROUPS:-}; do
    allow "$@" --operation Describe --group "$group"
done
