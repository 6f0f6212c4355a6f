package echoless;

import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;

/**
 * A duplicate filter of any kind: it tells for each key whether the key was seen before, in fixed
 * memory. One thread at a time may use it; a call while another one runs is an exception.
 *
 * <p>Verdicts are bits: bit {@code i % 64} of {@code verdicts[i / 64]} is set if key {@code i} is a
 * duplicate. An array may be longer than a batch needs; then its first words are written, and the
 * bits past the last key of the last word are zero. After an exception nothing has changed, unless
 * its code is {@link Code#PANICKED}.
 */
public final class Filter extends Resource {
  private final byte[] savedBytes;

  private Filter(long handle, byte[] savedBytes) {
    super("filter", handle);
    this.savedBytes = savedBytes;
  }

  /**
   * Builds a filter from a specification such as {@code fingerprint:fpr=1e-8,memory=64MiB}, with
   * {@link Hashing#DEFAULT}.
   */
  public static Filter of(String spec) {
    return of(spec, Hashing.DEFAULT);
  }

  /** As {@link #of(String)}, with other hashes. */
  public static Filter of(String spec, Hashing hashing) {
    EcholessException.present("hashing", hashing, "a Hashing");
    return new Filter(newFilter(spec, hashing.seed, hashing.secret), new byte[0]);
  }

  /**
   * Restores a filter that was saved with {@link Hashing#DEFAULT}, of any memory.
   *
   * @see #load(InputStream, Hashing, long)
   */
  public static Filter load(InputStream in) {
    return load(in, Hashing.DEFAULT, Long.MAX_VALUE);
  }

  /**
   * Restores a filter from a stream, which is read to its end and must have nothing behind the
   * state. A filter of more memory than {@code memoryLimit} is rejected before it is built.
   *
   * @throws java.io.UncheckedIOException if the stream fails
   */
  public static Filter load(InputStream in, Hashing hashing, long memoryLimit) {
    EcholessException.present("hashing", hashing, "a Hashing");
    Streams streams = Streams.of(in);
    byte[][] bytes = new byte[1][];
    long handle =
        streams.run(() -> loadWhole(streams, hashing.seed, hashing.secret, memoryLimit, bytes));
    return new Filter(handle, bytes[0]);
  }

  /**
   * Probes and inserts hashes in order, which must be uniform in all 64 bits: ids are not, {@link
   * Hasher} makes hashes of them. Returns the number of duplicates.
   */
  public long observe(long[] hashes, int n, long[] verdicts) {
    return judgeHashes(handle(), true, hashes, null, n, verdicts);
  }

  /** As {@link #observe(long[], int, long[])}, each at its tick, for a filter with a window. */
  public long observe(long[] hashes, long[] ticks, int n, long[] verdicts) {
    EcholessException.present("ticks", ticks, "an array");
    return judgeHashes(handle(), true, hashes, ticks, n, verdicts);
  }

  /**
   * Probes and inserts keys behind each other in order: key {@code i} is {@code packed[offsets[i]]}
   * to before {@code packed[offsets[i + 1]]}.
   */
  public long observe(byte[] packed, int[] offsets, int n, long[] verdicts) {
    return judgePacked(handle(), true, packed, offsets, null, n, verdicts);
  }

  /** As {@link #observe(byte[], int[], int, long[])}, each at its tick. */
  public long observe(byte[] packed, int[] offsets, long[] ticks, int n, long[] verdicts) {
    EcholessException.present("ticks", ticks, "an array");
    return judgePacked(handle(), true, packed, offsets, ticks, n, verdicts);
  }

  /**
   * Probes and inserts hashes from the position of a direct buffer on, in native order, without
   * copying them. The position does not move, and no thread may write the buffer during the call.
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

  /** Moves the clock of a window. An earlier tick has no effect. */
  public void advanceTo(long tick) {
    advance(handle(), tick);
  }

  /** Removes all keys, and resets the counters and the clock. */
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
   * Writes the state with bytes of the caller, such as a position in a stream. The stream stays
   * open.
   *
   * @throws java.io.UncheckedIOException if the stream fails
   */
  public void save(OutputStream out, byte[] bytes) {
    Streams streams = Streams.of(out);
    streams.run(
        () -> {
          saveWhole(handle(), bytes, streams);
          return null;
        });
  }

  /** The bytes that were saved with the state that this filter was loaded from; none otherwise. */
  public byte[] savedBytes() {
    return savedBytes.clone();
  }
}
