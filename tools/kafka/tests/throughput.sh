#!/usr/bin/env bash
# Records a second of one member with a broker on this machine, CPU time of the member, and the size
# of its state: copying, judging, and judging with a window.
#
#   throughput.sh [RECORDS]    5,000,000 without; 3,000,000 take three minutes on two cores
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
records="${1:-5000000}" port=39092
cd "$here/../../.."
target="${CARGO_TARGET_DIR:-target}/release"
cargo build --release -q -p echoless-kafka --bin echoless-kafka --example load
folder="$(mktemp -d)"
bash "$here/broker/start.sh" "$folder/broker" "$port" &
broker=$!
trap 'kill -9 "$broker" && wait "$broker" 2>/dev/null || true; rm -rf "$folder"' EXIT
until (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.5; done

"$target/examples/load" "127.0.0.1:$port" "$records" calls copied fresh windowed
measure() {
  local out="$1" begin end cpu state=0
  shift
  local log="$folder/$out.log"
  "$target/echoless-kafka" --brokers "127.0.0.1:$port" --group "$out" --in calls --out "$out" \
    --report 1s "$@" 2>"$log" &
  local member=$!
  until grep -q 'from offset' "$log"; do sleep 0.1; done
  begin=$(date +%s%N)
  until grep -qE '[1-9] partitions, lag 0([,;]|$)' "$log"; do sleep 0.1; done
  end=$(date +%s%N)
  # User and system time, in ticks.
  cpu=$(cut -d ' ' -f 14,15 "/proc/$member/stat")
  kill "$member"
  wait "$member"
  [ ! -d "$folder/$out.state" ] || state=$(du -sk "$folder/$out.state" | cut -f 1)
  awk -v out="$out" -v n="$records" -v ns="$((end - begin))" -v cpu="$cpu" -v kib="$state" \
    -v hz="$(getconf CLK_TCK)" 'BEGIN {
    split(cpu, ticks, " ")
    printf "%s: %d records/s, %.2f s of CPU a million records, state %d MiB\n",
      out, n / ns * 1e9, (ticks[1] + ticks[2]) / hz / n * 1e6, kib / 1024 }'
  tail -n 1 "$log"
}
measure copied --repartition
measure fresh --state "$folder/fresh.state" -m 8MiB
measure windowed --state "$folder/windowed.state" -m 8MiB --window 24h
