#!/usr/bin/env bash
# Builds the native library and runs every check of the Java package. Run it by hand:
# `bash tools/java/test.sh`. PROFILE selects the profile of cargo; default: dev. ECHOLESS_LIBRARY is
# the absolute path of a library that is built already.
set -euo pipefail
cd "$(dirname "$0")"

source ./maven.sh

# Installed, since the benchmark here and the operator for Flink need it.
maven . install
bash ../../.ci/ran < "$log" > /dev/null || { echo "no test ran"; exit 1; }

# The example is a user of the jar.
state=$(mktemp -u)
for run in first second; do
  printf 'a\nb\na\n%s\n' "$run" | java -cp target/echoless-0.2.0.jar examples/Deduplicate.java "$state"
done > target/example.txt
rm "$state"
diff <(printf 'a\nb\nfirst\nsecond\n') target/example.txt

maven bench package
