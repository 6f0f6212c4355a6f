package echoless;

/** A {@link Judge} of keys at their ticks, for a filter with a window. */
public sealed interface TimedJudge extends Judge permits OrderedThread, WholeFilter {
  /** As {@link #observe(long[], int, long[])}, each at its tick. */
  default long observe(long[] hashes, long[] ticks, int n, long[] verdicts) {
    EcholessException.present("ticks", ticks, "an array");
    return ((Resource) this).judge(true, hashes, ticks, n, verdicts);
  }

  /** As {@link #observe(byte[], int[], int, long[])}, each at its tick. */
  default long observe(byte[] packed, int[] offsets, long[] ticks, int n, long[] verdicts) {
    EcholessException.present("ticks", ticks, "an array");
    return ((Resource) this).judge(true, packed, offsets, ticks, n, verdicts);
  }
}
