#!/usr/bin/env bash
# Builds the native library and runs every check of the Java package. Run it by hand:
# `bash tools/java/test.sh`. PROFILE selects the profile of cargo; default: dev. ECHOLESS_LIBRARY is
# the absolute path of a library that is built already.
set -euo pipefail
cd "$(dirname "$0")"

for program in javac mvn; do
  if ! command -v "$program" > /dev/null; then
    echo "SKIPPED tools/java: no $program"
    exit 0
  fi
done

# Cargo says where the library is, since folder and profile can be chosen.
library=${ECHOLESS_LIBRARY:-$(cargo build --locked -p echoless-java --profile "${PROFILE:-dev}" \
  --message-format json-render-diagnostics |
  grep -o '"[^"]*/libecholess_java\.so"' | tail -n 1 | tr -d '"')}
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
      echo "SKIPPED tools/java/$folder: its artefacts cannot be downloaded"
      exit 0
    fi
    cat "$log"
    exit 1
  fi
  grep 'Tests run:.*[^s]$' "$log" | tail -n 1 || true
}

# Installed, since the benchmark here and the operator for Flink need it.
maven . install
bash ../../.ci/ran < "$log" > /dev/null || { echo "no test ran"; exit 1; }

# The example is a user of the jar.
state=$(mktemp -u)
for run in first second; do
  printf 'a\nb\na\n%s\n' "$run" | java -cp target/echoless-0.1.0.jar examples/Deduplicate.java "$state"
done > target/example.txt
rm "$state"
diff <(printf 'a\nb\nfirst\nsecond\n') target/example.txt

maven bench package
