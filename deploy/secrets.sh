#!/bin/sh
# Make the secrets of a first installation: an authority, the broker's certificate, passwords, and the
# token of HTTP.
#
#   sh secrets.sh FOLDER [NAME...]
#
# FOLDER must not exist. The NAMEs (default: mosquitto) and localhost are the broker's host names.
# If run as root, the files are given to the users of the containers in compose.yaml; otherwise they
# keep their owner. Needs openssl and mosquitto_passwd (Debian: openssl, mosquitto).
set -eu
folder=${1:?usage: sh secrets.sh FOLDER [NAME...]}
shift
[ $# -gt 0 ] || set -- mosquitto
names=DNS:localhost,IP:127.0.0.1
for name in "$@"; do names=$names,DNS:$name; done

umask 077
mkdir "$folder" "$folder/broker" "$folder/broker/certs"
cd "$folder"
key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'

# The key of the authority must stay in this folder: keep it off other machines, or delete it.
# shellcheck disable=SC2086
openssl req -x509 $key -keyout ca.key -out ca.crt -days 3650 -subj '/CN=anonymizer' \
    -addext keyUsage=critical,keyCertSign,cRLSign 2>/dev/null
# shellcheck disable=SC2086
openssl req $key -keyout broker/certs/server.key -out server.csr -subj "/CN=$1" 2>/dev/null
echo "subjectAltName=$names" >server.ext
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 397 \
    -extfile server.ext -out broker/certs/server.crt 2>/dev/null
rm server.csr server.ext
cp ca.crt broker/certs/ca.crt

for user in gateway analyst simulator; do
    openssl rand -base64 24 >"$user.password"
    echo "$user:$(cat "$user.password")" >>broker/passwords
done
mosquitto_passwd -U broker/passwords
openssl rand -base64 24 >grafana.password
openssl rand 32 >cluster.key
# The same for the gateway, bridges and workers, and for Prometheus, which runs as another user.
openssl rand -base64 24 >http.token
cp http.token prometheus.token

if [ "$(id -u)" -eq 0 ]; then
    chown -R 1883:1883 broker
    chown 10001:10001 gateway.password simulator.password cluster.key http.token
    chown 65534:65534 prometheus.token
    chown 472:472 grafana.password
fi
chmod 644 ca.crt
