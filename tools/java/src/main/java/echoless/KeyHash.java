package echoless;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The seeded hash of short keys, which {@link Hasher} takes for single keys because a native call
 * costs many times the hash of a short one. It is wyhash (final version 3); tests compare it with
 * the engine's.
 */
final class KeyHash {
  /** The most bytes of a key. Longer ones are hashed in another way. */
  static final int MAX_LENGTH = 48;

  private static final long SECRET_0 = 0xa0761d6478bd642fL;
  private static final long SECRET_1 = 0xe7037ed1a0b428dbL;

  private static final VarHandle LONG =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INT =
      MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  private KeyHash() {}

  static long of(long seed, byte[] key) {
    int length = key.length;
    long state = seed ^ SECRET_0;
    long first = 0;
    long second = 0;
    if (length > 16) {
      for (int start = 0; length - start > 16; start += 16) {
        state = multiply(long64(key, start) ^ SECRET_1, long64(key, start + 8) ^ state);
      }
      first = long64(key, length - 16);
      second = long64(key, length - 8);
    } else if (length >= 4) {
      // Words from both ends, which overlap in keys of less than 16 bytes.
      int inner = length >> 3 << 2;
      first = int32(key, 0) << 32 | int32(key, inner);
      second = int32(key, length - 4) << 32 | int32(key, length - 4 - inner);
    } else if (length > 0) {
      first = (key[0] & 0xffL) << 16 | (key[length >> 1] & 0xffL) << 8 | key[length - 1] & 0xffL;
    }
    return multiply(SECRET_1 ^ length, multiply(first ^ SECRET_1, second ^ state));
  }

  private static long long64(byte[] key, int from) {
    return (long) LONG.get(key, from);
  }

  private static long int32(byte[] key, int from) {
    return (int) INT.get(key, from) & 0xffff_ffffL;
  }

  /** Both halves of the unsigned 128-bit product, xor. */
  private static long multiply(long one, long other) {
    // A factor below zero is 2^64 more as an unsigned number.
    long high =
        Math.multiplyHigh(one, other) + (one >> 63 & other) + (other >> 63 & one);
    return high ^ one * other;
  }
}
