package echoless;

import java.nio.ByteBuffer;

/**
 * A filter that all threads use at the same time, without locks: of equal keys of several threads,
 * exactly one is fresh. It has no window and no saved state. Verdicts are those of {@link Filter}.
 */
public final class SharedFilter extends Resource {
  private SharedFilter(long handle) {
    super("filter", handle);
  }

  /** Builds a filter from a specification such as {@code row4x16:memory=64MiB}. */
  public static SharedFilter of(String spec) {
    return of(spec, Hashing.DEFAULT);
  }

  /** As {@link #of(String)}, with other hashes. */
  public static SharedFilter of(String spec, Hashing hashing) {
    EcholessException.present("hashing", hashing, "a Hashing");
    return new SharedFilter(newShared(spec, hashing.seed, hashing.secret));
  }

  /** As {@link Filter#observe(long[], int, long[])}. */
  public long observe(long[] hashes, int n, long[] verdicts) {
    return judgeHashes(handle(), true, hashes, null, n, verdicts);
  }

  /** As {@link Filter#observe(byte[], int[], int, long[])}. */
  public long observe(byte[] packed, int[] offsets, int n, long[] verdicts) {
    return judgePacked(handle(), true, packed, offsets, null, n, verdicts);
  }

  /** As {@link Filter#observe(ByteBuffer, int, long[])}. */
  public long observe(ByteBuffer directHashes, int n, long[] verdicts) {
    return judgeDirect(true, directHashes, n, verdicts);
  }

  /** As {@link Filter#contains(long[], int, long[])}. */
  public long contains(long[] hashes, int n, long[] verdicts) {
    return judgeHashes(handle(), false, hashes, null, n, verdicts);
  }

  /** As {@link Filter#contains(byte[], int[], int, long[])}. */
  public long contains(byte[] packed, int[] offsets, int n, long[] verdicts) {
    return judgePacked(handle(), false, packed, offsets, null, n, verdicts);
  }

  /** Removes all keys, while no thread observes any. */
  public void clear() {
    clear(handle());
  }

  /** Counters and error estimates. This may read the memory of the filter. */
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
}
