#!/bin/sh
# What `waitreg rewind` may do in Kafka, for an operator's user: move the offsets of one group. Run by an administrator;
# what follows the file's name is given to every kafka-acls:
#
#   PRINCIPAL=User:shop-operator GROUP=shop INPUT_TOPICS="orders refunds" \
#       sh deploy/kafka/rewind.sh --bootstrap-server broker:9093 --command-config admin.properties
#
# WAIT_TOPIC is by default that of the settings. The user of the group's processors has these permissions already, and
# is the one for `waitreg replay`, which needs what a processor needs (processor.sh).
set -eu
: "${PRINCIPAL:?who that is to the broker, e.g. User:shop-operator}" "${GROUP:?processor.group}"
: "${INPUT_TOPICS:?processor.topics, with spaces between them}"
WAIT_TOPIC=${WAIT_TOPIC:-waitreg.wait}

allow() {
    "${KAFKA_ACLS:-kafka-acls}" "$@" --add --allow-principal "$PRINCIPAL"
}

# To commit offsets, the broker asks for READ on the group and on the topic.
for topic in $INPUT_TOPICS; do
    allow "$@" --operation Read --topic "$topic"
done
allow "$@" --operation Read --group "$GROUP"
# The metadata of the offsets names the wait topic by its ID.
allow "$@" --operation Describe --topic "$WAIT_TOPIC"
