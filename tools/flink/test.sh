#!/usr/bin/env bash
# Builds the native library and the Java package, and runs every check of the Flink operator. Run it
# by hand: `bash tools/flink/test.sh`. PROFILE selects the profile of cargo; default: dev.
# ECHOLESS_LIBRARY is the absolute path of a native library that is built already, and
# ECHOLESS_COMMAND that of the command, whose verdicts are compared if it is there. KILLS is the
# number of task managers that each test with kills kills; default: 3 in this process, 2 processes
# of a cluster, and 1 with Kafka.
set -euo pipefail
cd "$(dirname "$0")"

source ../java/maven.sh
command=${ECHOLESS_COMMAND:-$(dirname "$library")/echoless}
[ ! -x "$command" ] || export ECHOLESS_COMMAND="$command"

maven ../java install -DskipTests
maven . install ${KILLS:+"-Decholess.kills=$KILLS"}
bash ../../.ci/ran < "$log" > /dev/null || { echo "no test ran"; exit 1; }

# The command of the README.
maven . exec:exec
diff <(printf 'call 17\ncall 18\n') <(grep '^call ' "$log")
