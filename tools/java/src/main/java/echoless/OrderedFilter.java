package echoless;

import java.io.InputStream;
import java.io.OutputStream;
import java.util.function.LongConsumer;
import java.util.function.Supplier;

/**
 * A filter in lines for several threads whose verdicts are those of one: batches apply in the order
 * of their tickets. All threads may use it at the same time; each observes through an {@link
 * OrderedThread} of its own.
 */
public final class OrderedFilter extends SavedFilter {
  private OrderedFilter(long handle, byte[] savedBytes) {
    super(handle, savedBytes);
  }

  /**
   * Builds a filter of so many partitions, with {@link Hashing#DEFAULT}. Threads that do nothing
   * but judge need a partition each; verdicts do not depend on the number.
   */
  public static OrderedFilter of(String spec, int partitions) {
    return of(spec, Hashing.DEFAULT, partitions);
  }

  /** As {@link #of(String, int)}, with other hashes. */
  public static OrderedFilter of(String spec, Hashing hashing, int partitions) {
    return new OrderedFilter(make(ORDERED, spec, hashing, partitions), new byte[0]);
  }

  /**
   * As {@link Filter#load(InputStream, Hashing, long)}, from the state of an ordered filter with any
   * number of partitions, or that of a {@link Filter}.
   *
   * @throws java.io.UncheckedIOException if the stream fails
   */
  public static OrderedFilter load(
      InputStream in, Hashing hashing, int partitions, long memoryLimit) {
    return restore(ORDERED, in, hashing, partitions, memoryLimit, OrderedFilter::new);
  }

  /** The access of one more thread. */
  public OrderedThread thread() {
    return new OrderedThread(open(handle()));
  }

  /**
   * Writes the state of one point of the stream, while threads observe. There {@code before} runs,
   * then the ticket of the point is taken, then {@code position} returns the bytes of the caller: so
   * {@code before} can lock the input, and {@code position} read its position and unlock it. {@code
   * position} must not use the filter, which is an exception. From a thread that holds no ticket.
   *
   * @throws java.io.UncheckedIOException if the stream fails
   */
  public void save(OutputStream out, Runnable before, Supplier<byte[]> position) {
    Streams streams = Streams.of(out, before, position);
    streams.run(
        () -> {
          saveAt(handle(), streams);
          return null;
        });
  }

  /** Threads observe meanwhile. */
  @Override
  void saving(LongConsumer save) {
    save.accept(handle());
  }
}
