package echoless;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Random;
import org.junit.jupiter.api.Test;

class KeyHashTest {
  /** Batches are hashed by the engine. */
  @Test
  void itIsTheHashOfTheEngine() {
    Random random = new Random(41);
    long[] expected = new long[1];
    for (int round = 0; round < 50; round++) {
      long seed = round == 0 ? 0 : random.nextLong();
      for (int length = 0; length <= 100; length++) {
        byte[] key = new byte[length];
        random.nextBytes(key);
        Hashing hashing = Hashing.seeded(seed);
        Hasher.hash(key, new int[] {0, length}, 1, hashing, expected);
        assertEquals(expected[0], Hasher.hash(key, hashing), "length " + length);
        if (length <= KeyHash.MAX_LENGTH) {
          assertEquals(expected[0], KeyHash.of(seed, key), "length " + length);
        }
      }
    }
  }
}
