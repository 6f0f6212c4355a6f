package echoless.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HashKeyTest {
  private static final byte[] SECRET = HexFormat.of().parseHex("000102030405060708090a0b0c0d0e0f");

  @TempDir Path folder;

  private static Settings settings(HashKey key) {
    return Settings.of(1 << 20, 1e-8, 0, 0, 0, false, 16, 0, key);
  }

  @Test
  void aFileHasItInHexadecimalDigits() throws Exception {
    Path file = folder.resolve("secret");
    for (String text : List.of("000102030405060708090a0b0c0d0e0f\n", "000102030405060708090A0B0C0D0E0F")) {
      Files.writeString(file, text);
      assertArrayEquals(SECRET, HashKey.ofFile(file.toString()).read());
    }
    for (String text : List.of("", "00", "000102030405060708090a0b0c0d0e0g", "0".repeat(33))) {
      Files.writeString(file, text);
      Exception failure =
          assertThrows(
              IllegalStateException.class, () -> settings(HashKey.ofFile(file.toString())).hashing());
      assertEquals("the hashKey of the deduplication cannot be read", failure.getMessage());
      assertEquals(
          "invalid hashKey in " + file + ": expected 32 hexadecimal digits (16 bytes) and nothing "
              + "else",
          failure.getCause().getMessage());
    }
  }

  @Test
  void aStateKnowsTheSecretAgain() {
    Settings keyed = settings(HashKey.of(SECRET));
    byte[] other = SECRET.clone();
    other[15]++;
    long none = id(settings(null));
    long one = id(keyed);
    long two = id(settings(HashKey.of(other)));
    assertEquals(one, id(settings(() -> SECRET)));
    Settings.requireEqualHashKeys(one, one);
    Settings.requireEqualHashKeys(none, none);
    String before = "the state was saved with";
    assertRejected(before + " another hashKey", one, two);
    assertRejected(before + " a hashKey, and the job has none", one, none);
    assertRejected(before + "out a hashKey, and the job has one", none, one);
  }

  private static long id(Settings settings) {
    return settings.hashKeyId(settings.hashing());
  }

  private static void assertRejected(String text, long saved, long job) {
    Exception failure =
        assertThrows(
            IllegalStateException.class, () -> Settings.requireEqualHashKeys(saved, job));
    assertEquals(text, failure.getMessage());
  }

  @Test
  void thePlanOfAJobDoesNotShowIt() {
    StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment();
    Deduplicate.of(env.fromData(1L))
        .key(record -> new byte[] {1})
        .memory("1MiB")
        .hashKey(HashKey.of(SECRET))
        .build()
        .print();
    String plan = env.getExecutionPlan() + settings(HashKey.of(SECRET));
    assertFalse(plan.contains("0a0b0c") || plan.contains("10, 11, 12"), plan);
  }
}
