package echoless.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;

import echoless.Hasher;
import echoless.Hashing;
import java.util.Random;
import org.junit.jupiter.api.Test;

class KeyHashTest {
  @Test
  void itIsTheHashOfTheEngine() {
    Random random = new Random(41);
    for (int round = 0; round < 50; round++) {
      long seed = round == 0 ? 0 : random.nextLong();
      KeyHash hash = new KeyHash(seed);
      for (int length = 0; length <= 100; length++) {
        byte[] key = new byte[length];
        random.nextBytes(key);
        assertEquals(Hasher.hash(key, Hashing.seeded(seed)), hash.of(key), "length " + length);
      }
    }
  }
}
