package echoless;

import java.io.InputStream;
import java.io.OutputStream;

/**
 * The filters of a range of partitions of one divided filter: what a task of a cluster owns. One
 * thread at a time may use it.
 *
 * <p>A key goes to the partition {@link #partitionOf} of its hash; a key of another task's partition
 * is an exception. The order inside of a partition is that of the calls, and each partition has its
 * own clock, so verdicts are those of the undivided filter if the specification has no window. The
 * memory must be a multiple of what {@code count} partitions of whole lines take.
 */
public final class Partitions extends AnyFilter {
  /** Bits of the fate of a record: a duplicate. */
  public static final int DUPLICATE = 1;

  /** Without a verdict. */
  public static final int UNJUDGED = 2;

  /** Older than the clock of its partition by more than window and lateness. */
  public static final int LATE = 4;

  /** Further ahead of the watermark than the skew. */
  public static final int BEYOND_SKEW = 8;

  /** Further ahead of the latest time than any record may be. */
  public static final int TOO_FAR_AHEAD = 16;

  private Partitions(long handle) {
    super(handle);
  }

  /**
   * A window in ticks.
   *
   * @param tickMillis the length of a tick
   * @param ticks the window
   * @param lateTicks the age from which on a record is late
   * @param skewTicks how far keys may be ahead of the watermark
   * @param beyondTicks how long keys are remembered beyond the window
   */
  public record Window(
      long tickMillis, long ticks, long lateTicks, long skewTicks, long beyondTicks) {
    /** The ticks of a window: 2,000 to 4,999, unless a tick would be below a millisecond. */
    public static Window of(long windowMillis, long latenessMillis, long skewMillis) {
      long[] fields = new long[5];
      windowFields(windowMillis, latenessMillis, skewMillis, fields);
      return new Window(fields[0], fields[1], fields[2], fields[3], fields[4]);
    }
  }

  /**
   * Judges records by their times from now on, with {@link #judge}.
   *
   * @param maxAdvanceMillis how far ahead of the latest time a record may be; 0 for any
   * @param judged the bits of records that are late or beyond the skew and judged all the same
   * @param failing the bits of those that are exceptions
   */
  public void setTimeRules(Window window, long maxAdvanceMillis, int judged, int failing) {
    long[] fields = {window.tickMillis, window.ticks, window.lateTicks, window.skewTicks};
    setTimeRules(handle(), fields, maxAdvanceMillis, judged, failing);
  }

  /**
   * Judges records in order, by keys behind each other as in {@link Hasher#hash(byte[], int[], int,
   * Hashing, long[])}. Returns the number of duplicates.
   *
   * @param times of the records, in milliseconds since 1970; a record below 0 is not judged. Without
   *     rules, others do not matter
   * @param now the time of the system
   * @param fates what happened to each record, in bits
   */
  public long judge(byte[] packed, int[] offsets, int n, long[] times, long now, byte[] fates) {
    return judgeRecords(handle(), packed, offsets, n, times, now, fates);
  }

  /** Takes a watermark, in milliseconds since 1970. */
  public void setWatermark(long time, long now) {
    setWatermark(handle(), time, now);
  }

  /** Writes the latest tick of each partition, 0 before its first one, and that of the watermark. */
  public void clocks(long[] into) {
    clockFields(handle(), into);
  }

  /** Takes the clock of one partition from a state; the watermark is the least of all of them. */
  public void restoreClock(int partition, long latest, long watermark) {
    restoreClock(handle(), partition, latest, watermark);
  }

  /**
   * Builds the partitions {@code first} to {@code last}, both included, of {@code count}.
   *
   * @param spec the specification of the whole filter, all its memory included
   */
  public static Partitions open(String spec, Hashing hashing, int count, int first, int last) {
    EcholessException.present("hashing", hashing, "a Hashing");
    return new Partitions(newPartitions(spec, hashing.seed, hashing.secret, count, first, last));
  }

  /** The partition of a key: {@code count} equal ranges of hashes, which are unsigned. */
  public static int partitionOf(long hash, int count) {
    if (count < 1) {
      throw new EcholessException(
          Code.INVALID_ARGUMENT, "invalid count=" + count + ": expected 1 or more");
    }
    // The upper half of the 128-bit product. A hash below zero is 2^64 more as an unsigned number.
    long high = Math.multiplyHigh(hash, count);
    return (int) (hash < 0 ? high + count : high);
  }

  /**
   * Probes and inserts hashes in order; see {@link Filter#observe(long[], int, long[])}.
   *
   * @param ticks the tick of each key, or null for a filter without a window
   */
  public long observe(long[] hashes, long[] ticks, int n, long[] verdicts) {
    return judge(true, hashes, ticks, n, verdicts);
  }

  /**
   * Writes the state of one partition. The stream stays open.
   *
   * @throws java.io.UncheckedIOException if the stream fails
   */
  public void save(int partition, OutputStream out) {
    writePartition(partition, out);
  }

  /**
   * Replaces one partition by its saved state. The stream is read to its end, and must have nothing
   * behind the state. A state of another partition, filter or hashing is rejected, and the partition
   * is as before then.
   *
   * @throws java.io.UncheckedIOException if the stream fails
   */
  public void load(int partition, InputStream in) {
    Streams streams = Streams.of(in);
    streams.run(
        () -> {
          loadPartition(handle(), partition, streams);
          return null;
        });
  }

  /**
   * As {@link #report} of the owned partitions together, for threads that must not be held up: counters are those of now, but a
   * call reads at most {@code mostLines} lines of 64 bytes, rounded up to pages of 64 lines, and the
   * next call goes on behind them. What follows from the lines (fill, rates, expired keys) is that
   * of the last time that all of them were read; before the first time it is estimated from those
   * that were. Without a window, no report reads lines.
   */
  public Report reportInSlices(int mostLines) {
    if (mostLines < 1) {
      throw EcholessException.argument("mostLines", mostLines, "1 or more");
    }
    return readReport(mostLines);
  }

  /** The owned partitions as they are now, which another thread can save while this observes. */
  public Snapshot snapshot() {
    return new Snapshot(open(handle()));
  }

  private static native void windowFields(long window, long lateness, long skew, long[] into);

  private native void setTimeRules(
      long handle, long[] window, long maxAdvance, int judged, int failing);

  private native long judgeRecords(
      long handle, byte[] packed, int[] offsets, int n, long[] times, long now, byte[] fates);

  private native void setWatermark(long handle, long time, long now);

  private native void clockFields(long handle, long[] into);

  private native void restoreClock(
      long handle, int partition, long latest, long watermark);
}
