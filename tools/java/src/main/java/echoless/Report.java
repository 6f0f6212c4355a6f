package echoless;

/**
 * Counters and error estimates of a filter. A count that the filter does not keep is -1, and a rate
 * or an age that is unknown is not a number.
 *
 * @param memory the memory of the filter's state, in bytes
 * @param observed the keys observed, fresh and duplicate
 * @param fresh the keys reported as fresh
 * @param evictions the keys evicted, in a filter with a window before they expired. While this is
 *     0, no duplicate of a recorded key was missed.
 * @param expired the keys that were forgotten because their window was over
 * @param fill the fraction of the cells (bits, counters or slots) that is occupied, 0 to 1
 * @param expectedFpr the probability that a key that was never seen would be reported as a
 *     duplicate now
 * @param mostFpr the highest {@code expectedFpr}, that with every cell occupied, of a filter with a
 *     window
 * @param expectedFalseDuplicates an upper bound of the expected number of keys so far that were
 *     reported as duplicates but never seen before
 * @param missAge the age, in distinct keys, up to which at most 1 duplicate in 1000 is missed
 * @param windowTicks the window in ticks, 0 without one
 */
public record Report(
    long memory,
    long observed,
    long fresh,
    long evictions,
    long expired,
    double fill,
    double expectedFpr,
    double mostFpr,
    double expectedFalseDuplicates,
    double missAge,
    long windowTicks) {
  /** The number of fields. */
  static final int FIELDS = 11;

  /** A report from the fields as the native library writes them. */
  static Report of(long[] fields) {
    return new Report(
        fields[0],
        fields[1],
        fields[2],
        fields[3],
        fields[4],
        Double.longBitsToDouble(fields[5]),
        Double.longBitsToDouble(fields[6]),
        Double.longBitsToDouble(fields[7]),
        Double.longBitsToDouble(fields[8]),
        Double.longBitsToDouble(fields[9]),
        fields[10]);
  }
}
