#!/usr/bin/env bash
# Builds the native library and the Java package, and runs every check of the Flink operator. Run it
# by hand: `bash tools/flink/test.sh`. PROFILE selects the profile of cargo; default: dev.
# ECHOLESS_LIBRARY is the absolute path of a native library that is built already, and
# ECHOLESS_COMMAND that of the command, whose verdicts are compared if it is there. KILLS is the
# number of task managers that each test with kills kills; default: 3 in this process, 2 processes
# of a cluster, and 1 with Kafka.
set -euo pipefail
cd "$(dirname "$0")"

for program in javac mvn; do
  if ! command -v "$program" > /dev/null; then
    echo "SKIPPED tools/flink: no $program"
    exit 0
  fi
done

# Cargo says where the library is, since folder and profile can be chosen.
library=${ECHOLESS_LIBRARY:-$(cargo build --locked -p echoless-java --profile "${PROFILE:-dev}" \
  --message-format json-render-diagnostics |
  grep -o '"[^"]*/libecholess_java\.so"' | tail -n 1 | tr -d '"')}
command=${ECHOLESS_COMMAND:-$(dirname "$library")/echoless}
[ ! -x "$command" ] || export ECHOLESS_COMMAND="$command"
# Java would load this file; the one in the jar is to be tested.
unset ECHOLESS_LIBRARY

# Runs Maven in the folder $1. Exits if artefacts cannot be downloaded, which is no fault of ours.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
maven() {
  local folder=$1
  shift
  if ! (cd "$folder" && mvn -B -ntp "-Decholess.library.folder=$(dirname "$library")" "$@") \
    > "$log" 2>&1; then
    if grep -q 'Could not transfer\|could not be resolved\|Unknown host' "$log"; then
      echo "SKIPPED tools/flink: the artefacts of $folder cannot be downloaded"
      exit 0
    fi
    cat "$log"
    # Again, behind what Maven says of itself: which tests failed, and why.
    grep -A 12 '<<< \(FAILURE\|ERROR\)!' "$log" | cut -c 1-300
    exit 1
  fi
  grep '^SKIPPED' "$log" || true
  grep 'Tests run:.*[^s]$' "$log" | tail -n 1 || true
}

maven ../java install -DskipTests
maven . install ${KILLS:+"-Decholess.kills=$KILLS"}
bash ../../.ci/ran < "$log" > /dev/null || { echo "no test ran"; exit 1; }

# The command of the README.
maven . exec:exec
diff <(printf 'call 17\ncall 18\n') <(grep '^call ' "$log")
