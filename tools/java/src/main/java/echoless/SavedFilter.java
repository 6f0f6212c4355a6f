package echoless;

import java.io.InputStream;
import java.io.OutputStream;
import java.util.function.BiFunction;

/** What filters have that are saved as a whole. */
abstract sealed class SavedFilter extends AnyFilter permits WholeFilter, OrderedFilter {
  private final byte[] savedBytes;

  SavedFilter(long handle, byte[] savedBytes) {
    super(handle);
    this.savedBytes = savedBytes;
  }

  /** Restores a filter, which {@code make} makes of its number and the bytes of the caller. */
  static <F> F restore(
      int kind,
      InputStream in,
      Hashing hashing,
      int partitions,
      long memoryLimit,
      BiFunction<Long, byte[], F> make) {
    EcholessException.present("hashing", hashing, "a Hashing");
    Streams streams = Streams.of(in);
    byte[][] bytes = new byte[1][];
    long handle =
        streams.run(
            () ->
                loadObject(
                    kind, streams, hashing.seed, hashing.secret, partitions, memoryLimit, bytes));
    return make.apply(handle, bytes[0]);
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
   * <p>A {@link SharedFilter} and an {@link OrderedFilter} are used meanwhile. The state of a shared
   * filter has the keys of the calls that had ended before, and each key of the others or not; that
   * of an ordered one is at one point of the stream.
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
