package echoless.flink;

/**
 * What happens to a record that cannot be judged: its key function returned null, it has no event
 * time or an invalid one, or its time is too far ahead; see {@link Deduplicate#unjudged}.
 */
public enum Unjudged {
  /** The job fails. */
  FAIL,
  /** The record is forwarded without a verdict, as if it were fresh. */
  PASS,
  /** The record goes to {@link Deduplicate#unjudgedTo} alone. */
  ASIDE
}
