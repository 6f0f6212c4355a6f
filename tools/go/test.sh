#!/usr/bin/env bash
# Builds the static library and runs every check of the Go module. Run it by hand:
# `bash tools/go/test.sh`. PROFILE selects the profile of cargo; default: dev. ECHOLESS_LIBRARY is
# the absolute path of a library that is built already.
set -euo pipefail
cd "$(dirname "$0")"

for program in go "${CC:-cc}"; do
  if ! command -v "$program" > /dev/null; then
    echo "SKIPPED tools/go: no $program"
    exit 0
  fi
done
if [ "$(go env CGO_ENABLED)" != 1 ]; then
  echo "SKIPPED tools/go: CGO_ENABLED is not 1"
  exit 0
fi

# Cargo says where the library is, since folder and profile can be chosen.
library=${ECHOLESS_LIBRARY:-$(cargo build --locked -p echoless-capi --profile "${PROFILE:-dev}" \
  --message-format json-render-diagnostics |
  grep -o '"[^"]*/libecholess_c\.a"' | tail -n 1 | tr -d '"')}
export CGO_LDFLAGS="-L$(dirname "$library")"
# Go does not notice that a header outside of its folder changed, but that a flag did.
CGO_CFLAGS="-O2 -g -DECHOLESS_HEADER=$(cksum <../capi/include/echoless.h | cut -d ' ' -f 1)"
export CGO_CFLAGS

unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
  echo "not formatted, run gofmt -w: $unformatted"
  exit 1
fi
go vet ./...
# Go does not notice that a library changed, so no earlier result counts.
go test -count=1 ./... | bash ../../.ci/ran
if [ "$(go env GOARCH)" = amd64 ] || [ "$(go env GOARCH)" = arm64 ]; then
  go test -count=1 -race ./... | bash ../../.ci/ran
fi

# The benchmark is a module of its own, since it needs another filter.
cd bench
if go mod download 2> /dev/null; then
  go vet .
  go test -count=1 . | bash ../../../.ci/ran
else
  echo "SKIPPED tools/go/bench: its modules cannot be downloaded"
fi
