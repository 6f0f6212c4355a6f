#!/usr/bin/env bash
# Compares the operator with a ValueState of Flink, on the heap and in RocksDB, on a cluster of
# processes: `bash tools/flink/bench.sh [RECORDS [WAY ...]]`, for instance
# `bash tools/flink/bench.sh 50000000 none echoless hashmap rocksdb`. Run
# `PROFILE=release bash tools/java/test.sh` before, which installs the Java package.
set -euo pipefail
cd "$(dirname "$0")"
mvn -q -B test-compile dependency:build-classpath -Dmdep.outputFile=target/classpath.txt
exec java -Xmx1g --add-opens=java.base/java.util=ALL-UNNAMED \
  --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.time=ALL-UNNAMED \
  -cp "target/classes:target/test-classes:$(cat target/classpath.txt)" \
  echoless.flink.Comparison "${@:-5000000}"
