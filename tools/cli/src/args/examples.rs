//! What the help of each subcommand ends with: examples, and the exit codes.

/// Of the command as a whole.
pub(super) const EXIT_CODES: &str = "Exit codes: 0 success, 1 duplicates were found and --fail-on-duplicates was given, 2 the run failed, 129, 130 or 143 SIGHUP, SIGINT or SIGTERM ended the stream.";

pub(super) const DEDUP: &str = "\
Examples:
  echoless dedup access.log > fresh.log
  echoless dedup --csv --header -k caller,start_time -o fresh.csv --duplicates dropped.csv calls.csv
  echoless dedup --csv --header --window 10m --time-field start_time -k caller,callee -o fresh.csv calls.csv
  echoless dedup --format jsonl -k id,user.name events.jsonl > fresh.jsonl
  echoless dedup --known yesterday.log today.log > new.log
  echoless dedup --state seen -o kept.log access.log
  echoless dedup --csv --header -k caller --keep last calls.csv > latest.csv

ECHOLESS_OPTS has default options, split into words as a shell does; typed ones come after them.

Exit codes: 0 success, 1 duplicates were found and --fail-on-duplicates was given, 2 the run failed (a wrong option or record, a full disk) or an input is cut or damaged, 129, 130 or 143 SIGHUP, SIGINT or SIGTERM ended the stream after whole records.";

pub(super) const STATE: &str = "\
Examples:
  echoless dedup --state seen -o kept.log access.log
  echoless state show seen
  echoless state export seen -o seen.state

Exit codes: 0 success, 2 the state is damaged or cannot be read or written.";

pub(super) const PACKETS: &str = "\
Examples:
  echoless packets --diagnose mirror.pcap
  echoless packets mirror.pcap -o clean.pcap
  echoless packets --window 50ms --ignore ttl,mac,checksum --report mirror.pcap -o clean.pcap
  echoless packets --interface eth0 --promiscuous -o clean.pcapng

Exit codes: as those of dedup, see echoless dedup --help, but 0 for an input that is cut, without --strict; 3 packets were lost and --fail-on-loss was given.";

pub(super) const GEN: &str = "\
Examples:
  echoless gen cdr -n 1000 --duplicates 0.2 --header -o calls.csv
  echoless gen lines -n 1000 --record-bytes 64 --distribution zipf --duplicates 0.5 > lines.txt
  echoless gen packets -n 1000 --duplicates 0.1 --copies ttl -o mirror.pcap

Exit codes: 0 success, 2 the run failed.";

pub(super) const EVAL: &str = "\
Examples:
  echoless eval rlbsbf:k=2,memory=16KiB rowlru:memory=16KiB --stream uniform:records=100k,distinct=0.6
  echoless eval rowlru:memory=16KiB --input access.log --to-csv -

Exit codes: 0 success, 2 the run failed.";

pub(super) const PLAN: &str = "\
Examples:
  echoless plan -m 64KiB -n 100k --distinct 0.6
  echoless plan -m 64KiB --sample access.log --max-fpr 0.001 --spec-only

Exit codes: 0 success, 2 the run failed.";
