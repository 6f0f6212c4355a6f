package echoless.flink;

/**
 * What happens to a record whose event time is beyond the watermark by more than the skew; see
 * {@link Deduplicate#beyondSkew}.
 */
public enum Ahead {
  /**
   * The record is judged. The clock follows it at a distance of the skew, so records of slower
   * sources may become late.
   */
  JUDGE,
  /** The record is forwarded without a verdict, as if it were fresh. */
  PASS,
  /** The record goes to {@link Deduplicate#beyondSkewTo} alone. */
  ASIDE,
  /** The job fails. */
  FAIL
}
