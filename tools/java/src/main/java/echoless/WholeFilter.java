package echoless;

/** What filters of one thread and of all threads have in common. */
abstract sealed class WholeFilter extends SavedFilter implements TimedJudge
    permits Filter, SharedFilter {
  WholeFilter(long handle, byte[] savedBytes) {
    super(handle, savedBytes);
  }

  /** Whether each hash would be a duplicate now. Changes nothing in the filter. */
  public long contains(long[] hashes, int n, long[] verdicts) {
    return judge(false, hashes, null, n, verdicts);
  }

  /** Whether each key would be a duplicate now. Changes nothing in the filter. */
  public long contains(byte[] packed, int[] offsets, int n, long[] verdicts) {
    return judge(false, packed, offsets, null, n, verdicts);
  }

  /** Moves the clock of a window. An earlier tick has no effect. */
  public void advanceTo(long tick) {
    call(Call.ADVANCE, tick);
  }

  /** Removes all keys, and resets the counters and the clock, while no thread observes any. */
  public void clear() {
    call(Call.CLEAR, 0);
  }
}
