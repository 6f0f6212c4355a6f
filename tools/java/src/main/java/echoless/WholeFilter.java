package echoless;

import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.function.BiFunction;

/** What filters of one thread and of all threads have in common. */
abstract sealed class WholeFilter extends Resource permits Filter, SharedFilter {
  private final byte[] savedBytes;

  WholeFilter(long handle, byte[] savedBytes) {
    super("filter", handle);
    this.savedBytes = savedBytes;
  }

  /** Restores a filter, which {@code make} makes of its number and the bytes of the caller. */
  static <F> F restore(
      boolean isShared,
      InputStream in,
      Hashing hashing,
      long memoryLimit,
      BiFunction<Long, byte[], F> make) {
    EcholessException.present("hashing", hashing, "a Hashing");
    Streams streams = Streams.of(in);
    byte[][] bytes = new byte[1][];
    long handle =
        streams.run(
            () -> loadWhole(isShared, streams, hashing.seed, hashing.secret, memoryLimit, bytes));
    return make.apply(handle, bytes[0]);
  }

  /**
   * Probes and inserts hashes in order, which must be uniform in all 64 bits: ids are not, {@link
   * Hasher} makes hashes of them. Returns the number of duplicates.
   */
  public long observe(long[] hashes, int n, long[] verdicts) {
    return judgeHashes(handle(), true, hashes, null, n, verdicts);
  }

  /**
   * Probes and inserts keys behind each other in order: key {@code i} is {@code packed[offsets[i]]}
   * to before {@code packed[offsets[i + 1]]}.
   */
  public long observe(byte[] packed, int[] offsets, int n, long[] verdicts) {
    return judgePacked(handle(), true, packed, offsets, null, n, verdicts);
  }

  /**
   * Probes and inserts hashes from the position of a direct buffer on, in native order, without
   * copying them. The position does not move, and no thread may write or free the buffer during
   * the call.
   */
  public long observe(ByteBuffer directHashes, int n, long[] verdicts) {
    return judgeDirect(true, directHashes, n, verdicts);
  }

  /** Whether each hash would be a duplicate now. Changes nothing in the filter. */
  public long contains(long[] hashes, int n, long[] verdicts) {
    return judgeHashes(handle(), false, hashes, null, n, verdicts);
  }

  /** Whether each key would be a duplicate now. Changes nothing in the filter. */
  public long contains(byte[] packed, int[] offsets, int n, long[] verdicts) {
    return judgePacked(handle(), false, packed, offsets, null, n, verdicts);
  }

  /** Removes all keys, and resets the counters and the clock, while no thread observes any. */
  public void clear() {
    clear(handle());
  }

  /** Counters and error estimates. This may read the whole memory of the filter. */
  public Report report() {
    return readReport(0);
  }

  /** The specification. */
  public String spec() {
    return specText(handle());
  }

  /** The memory of the filter's state, in bytes. */
  public long memory() {
    return memory(handle());
  }

  /** Writes the state, without bytes of the caller. The secret of the hashing is not in it. */
  public void save(OutputStream out) {
    save(out, new byte[0]);
  }

  /**
   * Writes the state with bytes of the caller, such as a position in a stream, while no other
   * thread uses the filter, which is an exception. Calls that begin meanwhile are one, too. The
   * stream stays open.
   *
   * <p>A {@link SharedFilter} is used meanwhile, and no call waits for its stream. The state has the
   * keys of the calls that had ended before, and each key of the others or not.
   *
   * @throws java.io.UncheckedIOException if the stream fails
   */
  public void save(OutputStream out, byte[] bytes) {
    Streams streams = Streams.of(out);
    saving(
        handle ->
            streams.run(
                () -> {
                  saveWhole(handle, bytes, streams);
                  return null;
                }));
  }

  /** The bytes that were saved with the state that this filter was loaded from; none otherwise. */
  public byte[] savedBytes() {
    return savedBytes.clone();
  }
}
