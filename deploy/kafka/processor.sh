#!/bin/sh
# What the processors of one group may do in Kafka, and nothing else. Run by an administrator; what follows the
# file's name is given to every kafka-acls:
#
#   PRINCIPAL=User:shop-processor GROUP=shop INPUT_TOPICS="orders refunds" \
#       sh deploy/kafka/processor.sh --bootstrap-server broker:9093 --command-config admin.properties
#
# WAIT_TOPIC and DEAD_LETTER_TOPICS (several with spaces) are by default those of the settings.
# READ and WRITE bring DESCRIBE along, WRITE on a topic brings IDEMPOTENT_WRITE along (KIP-679).
set -eu
: "${PRINCIPAL:?who they are to the broker, e.g. User:shop-processor}" "${GROUP:?processor.group}"
: "${INPUT_TOPICS:?processor.topics, with spaces between them}"
WAIT_TOPIC=${WAIT_TOPIC:-waitreg.wait}
DEAD_LETTER_TOPICS=${DEAD_LETTER_TOPICS:-waitreg.dlq}

allow() {
    "${KAFKA_ACLS:-kafka-acls}" "$@" --add --allow-principal "$PRINCIPAL"
}

# To consume; every start looks at the topics' limits (max.message.bytes).
for topic in $INPUT_TOPICS; do
    allow "$@" --operation Read --operation DescribeConfigs --topic "$topic"
done
# The group's redelivery and retry topics ({topic}.{group}.redeliver and {topic}.{group}.retry.10s, with the dots of the
# group doubled). DELETE is for the records that are committed; without it the processor warns at each start.
own=$(printf %s "$GROUP" | sed 's/\./../g')
for topic in $INPUT_TOPICS; do
    allow "$@" --operation Read --operation Write --operation Delete --operation DescribeConfigs \
        --topic "$topic.$own." --resource-pattern-type prefixed
done
# To be a member of the group and to commit.
allow "$@" --operation Read --group "$GROUP"
# Wait records and tombstones; it never reads them.
allow "$@" --operation Write --operation DescribeConfigs --topic "$WAIT_TOPIC"
for topic in $DEAD_LETTER_TOPICS; do
    allow "$@" --operation Write --operation DescribeConfigs --topic "$topic"
done
