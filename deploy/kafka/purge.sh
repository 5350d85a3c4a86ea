#!/bin/sh
# What `waitreg dlq purge --delete-records` may do in Kafka: delete records of dead letter topics, for good. Give it to an
# administrator's user and not to that of redrive.sh. Run by an administrator; what follows the file's name is given to
# every kafka-acls:
#
#   PRINCIPAL=User:shop-admin DEAD_LETTER_TOPICS="orders.dlq refunds.dlq" \
#       sh deploy/kafka/purge.sh --bootstrap-server broker:9093 --command-config admin.properties
#
# OPERATIONS_TOPIC and DEAD_LETTER_TOPICS are by default those of the settings.
set -eu
: "${PRINCIPAL:?who that is to the broker, e.g. User:shop-admin}"
OPERATIONS_TOPIC=${OPERATIONS_TOPIC:-waitreg.operations}
DEAD_LETTER_TOPICS=${DEAD_LETTER_TOPICS:-waitreg.dlq}

allow() {
    "${KAFKA_ACLS:-kafka-acls}" "$@" --add --allow-principal "$PRINCIPAL"
}

# The records are compared with the tables before they are deleted.
for topic in $DEAD_LETTER_TOPICS; do
    allow "$@" --operation Read --operation Delete --topic "$topic"
done
# Marks are read to the end of the topic; what is deleted is written there.
allow "$@" --operation Read --operation Write --topic "$OPERATIONS_TOPIC"
# The client that reads the operations topic has a group's name and asks for it; it neither joins nor commits.
allow "$@" --operation Describe --group "waitreg.redrive.$OPERATIONS_TOPIC"
