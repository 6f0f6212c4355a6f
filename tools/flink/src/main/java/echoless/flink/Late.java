package echoless.flink;

/**
 * What happens to a late record: one that is older than the clock of its key group by more than
 * window and lateness; see {@link Deduplicate#late}.
 */
public enum Late {
  /** The record is forwarded without a verdict, as if it were fresh. */
  PASS,
  /** The record is judged at the clock, where all late records share one instant. */
  JUDGE,
  /** The record goes to {@link Deduplicate#lateTo} alone. */
  ASIDE,
  /** The job fails. */
  FAIL
}
