#!/usr/bin/env bash
# Builds the native library and the Java library, and runs every test of the Flink operator. Run it
# by hand: `bash tools/flink/test.sh`. PROFILE selects the profile of cargo; default: dev.
# ECHOLESS_JAVA_LIBRARY is the absolute path of a native library that is built already. KILLS is the
# number of task managers that each test with kills kills; default: 3 in this process, 2 processes
# of a cluster, and 1 with Kafka.
set -euo pipefail
cd "$(dirname "$0")"

for program in java javac mvn; do
  if ! command -v "$program" > /dev/null; then
    echo "SKIPPED tools/flink: no $program"
    exit 0
  fi
done
if [ "$(javac -version 2>&1 | grep -o '[0-9]*' | head -n 1)" -lt 17 ]; then
  echo "SKIPPED tools/flink: needs JDK 17 or later"
  exit 0
fi

# Cargo says where the library is, since folder and profile can be chosen.
library=${ECHOLESS_JAVA_LIBRARY:-$(cargo build --locked -p echoless-java \
  --profile "${PROFILE:-dev}" --message-format json-render-diagnostics |
  grep -o '"[^"]*/libecholess_java\.so"' | tail -n 1 | tr -d '"')}

maven() { mvn -q -B "$@"; }
maven -f ../java/pom.xml install -DskipTests "-Decholess.library.folder=$(dirname "$library")"
if ! maven dependency:resolve > /dev/null 2>&1; then
  echo "SKIPPED tools/flink: its dependencies cannot be downloaded"
  exit 0
fi
maven test ${KILLS:+"-Decholess.kills=$KILLS"}
# The command of the README.
maven exec:java > target/example.txt
grep -q '^call 17$' target/example.txt
echo "tools/flink: all tests passed"
