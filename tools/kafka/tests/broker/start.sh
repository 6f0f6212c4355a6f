#!/usr/bin/env bash
# A Kafka broker for tests, from its published jars: one process that is its own controller.
#
#   start.sh FOLDER PORT    runs until it is killed; the process is the broker itself. Data are in
#                           FOLDER, and a later start goes on with them. PORT + 1 is the controller's.
#   start.sh --resolve      only fetches the jars.
#
# Ready when PORT accepts connections. Time-outs of groups are short, so that tests need not wait for
# members that were killed. Transactions that time out are aborted every 10 s, the default, and not
# sooner: a broker that was killed and has just started writes no markers for some partitions, and
# their transactions stay open without end (seen in 4.4.0 with 500 ms). Records are kept, too: by
# default those older than a week by their timestamps, which are event times, are deleted.
#
# Needs a JDK and Maven; KAFKA_JARS is where the jars are kept (default: target/kafka-jars of the
# repository).
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
jars="${KAFKA_JARS:-$here/../../../../target/kafka-jars}"

if ! [ -e "$jars/complete" ]; then
  mvn -B -q -f "$here/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
    -DoutputDirectory="$jars" >&2
  touch "$jars/complete"
fi
if [ "$1" = --resolve ]; then
  exit
fi
folder="$1" port="$2"

mkdir -p "$folder"
if ! [ -e "$folder/server.properties" ]; then
  cat > "$folder/server.properties.new" <<END
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
log.dirs=$folder/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
auto.create.topics.enable=false
log.retention.ms=-1
END
  mv "$folder/server.properties.new" "$folder/server.properties"
fi
# The jars bring no backend of SLF4J, and log4j writes to standard error.
run=(java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$jars/*"
  "-Dlog4j2.level=${KAFKA_LOG_LEVEL:-ERROR}")
"${run[@]}" kafka.tools.StorageTool format --ignore-formatted \
  --cluster-id 4L6g3nShT-eMCtK--X86sw --config "$folder/server.properties"
exec "${run[@]}" kafka.Kafka "$folder/server.properties"
