package echoless;

import java.io.InputStream;
import java.util.function.LongConsumer;

/**
 * A filter that all threads use at the same time, without locks: of equal keys of several threads,
 * exactly one is fresh. One such as {@code stamped:window=600,memory=64MiB} has a window, whose
 * clock is the latest tick of all threads. Verdicts are those of {@link Filter}.
 */
public final class SharedFilter extends WholeFilter {
  private SharedFilter(long handle, byte[] savedBytes) {
    super(handle, savedBytes);
  }

  /** Builds a filter from a specification such as {@code row4x16:memory=64MiB}. */
  public static SharedFilter of(String spec) {
    return of(spec, Hashing.DEFAULT);
  }

  /** As {@link #of(String)}, with other hashes. */
  public static SharedFilter of(String spec, Hashing hashing) {
    return new SharedFilter(make(SHARED, spec, hashing, 1), new byte[0]);
  }

  /** As {@link Filter#load(InputStream)}, from the state of a shared filter. */
  public static SharedFilter load(InputStream in) {
    return load(in, Hashing.DEFAULT, Long.MAX_VALUE);
  }

  /**
   * As {@link Filter#load(InputStream, Hashing, long)}, from the state of a shared filter.
   *
   * @throws java.io.UncheckedIOException if the stream fails
   */
  public static SharedFilter load(InputStream in, Hashing hashing, long memoryLimit) {
    return restore(SHARED, in, hashing, 1, memoryLimit, SharedFilter::new);
  }

  /** All threads use the filter meanwhile, the stream included. */
  @Override
  void saving(LongConsumer save) {
    save.accept(handle());
  }
}
