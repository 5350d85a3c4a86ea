#!/bin/sh
# What the sink may do in Kafka, and nothing else: it reads. `waitreg rebuild` needs the same. Run by an administrator;
# what follows the file's name is given to every kafka-acls:
#
#   PRINCIPAL=User:waitreg-sink sh deploy/kafka/sink.sh --bootstrap-server broker:9093 --command-config admin.properties
#
# WAIT_TOPIC, DEAD_LETTER_TOPICS (several with spaces), OPERATIONS_TOPIC, SINK_GROUP and CONNECT_GROUP are by default
# those of the settings.
set -eu
: "${PRINCIPAL:?who it is to the broker, e.g. User:waitreg-sink}"
WAIT_TOPIC=${WAIT_TOPIC:-waitreg.wait}
DEAD_LETTER_TOPICS=${DEAD_LETTER_TOPICS:-waitreg.dlq}
OPERATIONS_TOPIC=${OPERATIONS_TOPIC:-waitreg.operations}
SINK_GROUP=${SINK_GROUP:-waitreg.sink.$WAIT_TOPIC}
CONNECT_GROUP=${CONNECT_GROUP:-connect-wait.sink}

allow() {
    "${KAFKA_ACLS:-kafka-acls}" "$@" --add --allow-principal "$PRINCIPAL"
}

for topic in $WAIT_TOPIC $DEAD_LETTER_TOPICS $OPERATIONS_TOPIC; do
    allow "$@" --operation Read --operation DescribeConfigs --topic "$topic"
done
# Its offsets are mirrored to this group, for tools that show lag; without this permission it works all the same.
allow "$@" --operation Read --group "$SINK_GROUP"
# To see a Kafka Connect sink that keeps the same tables (sink.connect_group); none of ours starts alongside it; without
# this permission only sink.kind says so.
allow "$@" --operation Describe --group "$CONNECT_GROUP"
