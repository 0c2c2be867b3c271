#!/bin/sh
# One Kafka at 127.0.0.1:9092 from its jars, for a first look: sh deploy/kafka.sh JARS FOLDER
# Where there are no JARS yet, Maven fetches them.
set -eu
here=$(dirname "$0")
if [ ! -d "$1" ]; then
  case $1 in /*) jars=$1 ;; *) jars=$PWD/$1 ;; esac
  mvn --quiet --file "$here/../tests/cluster/pom.xml" dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$jars.part"
  mv "$jars.part" "$jars"
fi
mkdir -p "$2"
sed -e 's|^listeners=.*|listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093|' \
    -e 's|PLAINTEXT://kafka:9092|PLAINTEXT://127.0.0.1:9092|' \
    -e "s|^log.dirs=.*|log.dirs=$2/data|" "$here/kafka.properties" >"$2/kafka.properties"
if [ ! -f "$2/data/meta.properties" ]; then # it refuses data of another id than it is given
  id=$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=')
  java -cp "$1/*" kafka.tools.StorageTool format --cluster-id="$id" --config "$2/kafka.properties"
fi
exec java -cp "$1/*" kafka.Kafka "$2/kafka.properties"
