#!/bin/sh
# A bridge and two workers on this machine, for a first look: sh deploy/cluster.sh
# Kafka is at 127.0.0.1:9092, the MQTT broker at 127.0.0.1:1883. The secret is made if there is none.
set -eu
config=$(dirname "$0")/cluster.toml
[ -f cluster.secret ] || (umask 077 && head -c 32 /dev/urandom >cluster.secret)
ANONYMIZER__HTTP__PORT=8090 anonymizer bridge --config "$config" --name bridge &
members=$!
ANONYMIZER__HTTP__PORT=8091 anonymizer worker --config "$config" --state state --name a &
members="$members $!"
ANONYMIZER__HTTP__PORT=8092 anonymizer worker --config "$config" --state state --name b &
members="$members $!"
# shellcheck disable=SC2064
trap "kill $members" INT TERM
wait
