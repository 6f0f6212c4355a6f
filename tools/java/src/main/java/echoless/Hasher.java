package echoless;

/** The key hash of the engine, for programs that route keys before a filter judges them. */
public final class Hasher {
  static {
    Library.load();
  }

  private Hasher() {}

  /** The hash of a key with {@link Hashing#DEFAULT}. */
  public static long hash(byte[] key) {
    return hash(key, Hashing.DEFAULT);
  }

  /** The hash of a key. */
  public static long hash(byte[] key, Hashing hashing) {
    EcholessException.present("hashing", hashing, "a Hashing");
    EcholessException.present("key", key, "an array");
    if (hashing.secret == null && key.length <= KeyHash.MAX_LENGTH) {
      return KeyHash.of(hashing.seed, key);
    }
    return hashKey(hashing.seed, hashing.secret, key);
  }

  /**
   * The hashes of keys behind each other: key {@code i} is {@code packed[offsets[i]]} to before
   * {@code packed[offsets[i + 1]]}. The first {@code n} values of {@code hashes} are written.
   */
  public static void hash(byte[] packed, int[] offsets, int n, Hashing hashing, long[] hashes) {
    EcholessException.present("hashing", hashing, "a Hashing");
    hashPacked(hashing.seed, hashing.secret, packed, offsets, n, hashes);
  }

  /**
   * The hashes of numbers, such as ids, which are no hashes themselves: a hash is uniform in all 64
   * bits. A number and its bytes have different hashes.
   */
  public static void hash(long[] numbers, int n, Hashing hashing, long[] hashes) {
    EcholessException.present("hashing", hashing, "a Hashing");
    hashNumbers(hashing.seed, hashing.secret, numbers, n, hashes);
  }

  private static native long hashKey(long seed, byte[] secret, byte[] key);

  private static native void hashPacked(
      long seed, byte[] secret, byte[] packed, int[] offsets, int n, long[] hashes);

  private static native void hashNumbers(
      long seed, byte[] secret, long[] numbers, int n, long[] hashes);
}
