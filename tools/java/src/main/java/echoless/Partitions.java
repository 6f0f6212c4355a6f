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
  private Partitions(long handle) {
    super(handle);
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
    Streams streams = Streams.of(out);
    streams.run(
        () -> {
          savePartition(handle(), partition, streams);
          return null;
        });
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
}
