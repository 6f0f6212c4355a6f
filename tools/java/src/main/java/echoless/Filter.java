package echoless;

import java.io.InputStream;

/**
 * A duplicate filter of any kind: it tells for each key whether the key was seen before, in fixed
 * memory. One thread at a time may use it; a call while another one runs is an exception. After an
 * exception nothing has changed, unless its code is {@link Code#PANICKED}.
 */
public final class Filter extends WholeFilter {
  private Filter(long handle, byte[] savedBytes) {
    super(handle, savedBytes);
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
    return new Filter(make(FILTER, spec, hashing, 1), new byte[0]);
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
    return restore(FILTER, in, hashing, 1, memoryLimit, Filter::new);
  }
}
