package echoless;

import java.nio.ByteBuffer;

/**
 * Tells for each key whether it was seen before, and remembers it.
 *
 * <p>Verdicts are bits: bit {@code i % 64} of {@code verdicts[i / 64]} is set if key {@code i} is a
 * duplicate. An array may be longer than a batch needs; then its first words are written, and the
 * bits past the last key of the last word are zero. Each method returns the number of duplicates.
 */
public sealed interface Judge extends AutoCloseable permits TimedJudge, ExactFilter {
  /**
   * Probes and inserts hashes in order, which must be uniform in all 64 bits: ids are not, {@link
   * Hasher} makes hashes of them.
   */
  default long observe(long[] hashes, int n, long[] verdicts) {
    return ((Resource) this).judge(true, hashes, null, n, verdicts);
  }

  /**
   * Probes and inserts keys behind each other in order: key {@code i} is {@code packed[offsets[i]]}
   * to before {@code packed[offsets[i + 1]]}.
   */
  default long observe(byte[] packed, int[] offsets, int n, long[] verdicts) {
    return ((Resource) this).judge(true, packed, offsets, null, n, verdicts);
  }

  /**
   * Probes and inserts hashes from the position of a direct buffer on, in native order, without
   * copying them. The position does not move, and no thread may write or free the buffer during
   * the call.
   */
  default long observe(ByteBuffer directHashes, int n, long[] verdicts) {
    return ((Resource) this).judge(true, directHashes, n, verdicts);
  }

  @Override
  void close();
}
