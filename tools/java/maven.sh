# What the checks of the Java package and of the Flink operator share: source it from the folder of
# either. Sets `library`, the path of the native library, and `log`, what Maven said last.
tested=${PWD#"$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"/}

for program in javac mvn; do
  if ! command -v "$program" > /dev/null; then
    echo "SKIPPED $tested: no $program"
    exit 0
  fi
done

# Cargo says where the library is, since folder and profile can be chosen.
library=${ECHOLESS_LIBRARY:-$(cargo build --locked -p echoless-java --profile "${PROFILE:-dev}" \
  --message-format json-render-diagnostics |
  grep -o '"[^"]*/libecholess_java\.so"' | tail -n 1 | tr -d '"')}
# Java would load this file; the one in the jar is to be tested.
unset ECHOLESS_LIBRARY

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Runs Maven in the folder $1. Exits if artefacts cannot be downloaded, which is no fault of ours.
maven() {
  local folder=$1
  shift
  if ! (cd "$folder" && mvn -B -ntp "-Decholess.library.folder=$(dirname "$library")" "$@") \
    > "$log" 2>&1; then
    if grep -q 'Could not transfer\|could not be resolved\|Unknown host' "$log"; then
      echo "SKIPPED $tested: the artefacts of $folder cannot be downloaded"
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
