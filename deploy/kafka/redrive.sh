#!/bin/sh
# What `waitreg dlq redrive`, `archive` and `restore` may do in Kafka for one group, and nothing else. Run by an
# administrator; what follows the file's name is given to every kafka-acls:
#
#   PRINCIPAL=User:shop-operator GROUP=shop REDELIVERY_TOPICS="orders.shop.redeliver refunds.shop.redeliver" \
#       sh deploy/kafka/redrive.sh --bootstrap-server broker:9093 --command-config admin.properties
#
# OPERATIONS_TOPIC, WAIT_TOPIC and DEAD_LETTER_TOPICS are by default those of the settings. For --to origin, add the input
# topics to REDELIVERY_TOPICS. If a Kafka Connect sink keeps the tables, CONNECT_GROUP is its group (sink.connect_group).
set -eu
: "${PRINCIPAL:?who that is to the broker, e.g. User:shop-operator}" "${GROUP:?processor.group}"
: "${REDELIVERY_TOPICS:?the topics to send to, with spaces between them}"
OPERATIONS_TOPIC=${OPERATIONS_TOPIC:-waitreg.operations}
WAIT_TOPIC=${WAIT_TOPIC:-waitreg.wait}
DEAD_LETTER_TOPICS=${DEAD_LETTER_TOPICS:-waitreg.dlq}

allow() {
    "${KAFKA_ACLS:-kafka-acls}" "$@" --add --allow-principal "$PRINCIPAL"
}

# Marks are written, and read to the end of the topic; `waitreg doctor redrive` looks at its configuration.
allow "$@" --operation Read --operation Write --operation DescribeConfigs --topic "$OPERATIONS_TOPIC"
for topic in $REDELIVERY_TOPICS; do
    allow "$@" --operation Write --operation DescribeConfigs --topic "$topic"
done
# How far the tables are behind, without which it isn't known what became of redriven records.
for topic in $DEAD_LETTER_TOPICS; do
    allow "$@" --operation Describe --topic "$topic"
done
# How old the tables of a Kafka Connect sink are shows in the first record that it hasn't read.
if [ -n "${CONNECT_GROUP:-}" ]; then
    allow "$@" --operation Describe --group "$CONNECT_GROUP"
    allow "$@" --operation Read --topic "$WAIT_TOPIC"
else
    allow "$@" --operation Describe --topic "$WAIT_TOPIC"
fi
# The client that reads the operations topic has a group's name and asks for it; it neither joins nor commits.
allow "$@" --operation Describe --group "waitreg.redrive.$OPERATIONS_TOPIC"
# Whether a member of the group reads what is sent, and how far it is.
allow "$@" --operation Describe --group "$GROUP"
# With this ID the executors of one group fence one another. Give it to no other client.
allow "$@" --operation Write --transactional-id "waitreg.redrive.$GROUP"
