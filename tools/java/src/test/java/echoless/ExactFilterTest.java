package echoless;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A filter of one line, which alone would be wrong about most keys, has the verdicts of a set. */
class ExactFilterTest {
  @TempDir Path temporary;

  /** Texts behind each other, with the offsets of their ends. */
  private record Packed(byte[] bytes, int[] offsets) {
    static Packed of(String[] texts) {
      int[] offsets = new int[texts.length + 1];
      StringBuilder all = new StringBuilder();
      for (int i = 0; i < texts.length; i++) {
        all.append(texts[i]);
        offsets[i + 1] = all.length();
      }
      return new Packed(Keys.bytes(all.toString()), offsets);
    }
  }

  @Test
  void verdictsAreThoseOfASetThatWasSaved() {
    Path folder = temporary.resolve("keys of calls");
    Hashing hashing = Hashing.seeded(3);
    ExactFilter filter = ExactFilter.of("fingerprint:memory=64", hashing);
    Set<String> seen = new HashSet<>();
    Set<String> saved = Set.of();
    Random random = new Random(1);
    for (int step = 0; step < 40; step++) {
      String[] texts = new String[random.nextInt(300)];
      Arrays.setAll(texts, i -> "call " + random.nextInt(2000));
      Packed keys = Packed.of(texts);
      long[] verdicts = Keys.words(texts.length);
      long held = Arrays.stream(texts).filter(seen::contains).count();
      assertEquals(held, filter.contains(keys.bytes, keys.offsets, texts.length, verdicts));
      filter.observe(keys.bytes, keys.offsets, texts.length, verdicts);
      for (int i = 0; i < texts.length; i++) {
        assertEquals(!seen.add(texts[i]), Keys.isDuplicate(verdicts, i), step + ": " + i);
      }
      assertEquals(seen.size(), filter.report().fresh());
      if (step % 4 == 1) {
        filter.save(folder, new byte[] {(byte) step});
        saved = new HashSet<>(seen);
      } else if (step % 4 == 3) {
        // What was observed since is gone.
        fails(Code.BUSY, "in use", () -> ExactFilter.load(folder, hashing, Long.MAX_VALUE));
        filter.close();
        filter = ExactFilter.load(folder, hashing, Long.MAX_VALUE);
        assertArrayEquals(new byte[] {(byte) (step - 2)}, filter.savedBytes());
        seen = new HashSet<>(saved);
      }
    }
    fails(Code.UNSUPPORTED, "never saved", filter::clear);
    filter.close();
    assertTrue(ExactFilter.isSaved(folder));
    fails(Code.STATE_MISMATCH, "", () -> ExactFilter.load(folder));
    fails(Code.INVALID_SPEC, "", () -> ExactFilter.load(folder, hashing, 63));
  }

  @Test
  void whatIsWrongIsAnException() throws IOException {
    ExactFilter filter = ExactFilter.of("fingerprint:memory=1MiB");
    long[] verdicts = new long[1];
    fails(
        Code.INVALID_ARGUMENT,
        "the keys themselves",
        () -> filter.observe(new long[] {1}, 1, verdicts));
    fails(
        Code.INVALID_SPEC,
        "without a window",
        () -> ExactFilter.of("clocked:window=60,memory=1MiB"));
    assertFalse(ExactFilter.isSaved(temporary));
    fails(Code.IO, "", () -> ExactFilter.load(temporary.resolve("none")));
    fails(Code.INVALID_ARGUMENT, "folder", () -> filter.save(null));
    Files.write(temporary.resolve("notes"), new byte[0]);
    fails(Code.INVALID_ARGUMENT, "a new folder", () -> filter.save(temporary));
    Packed keys = Packed.of(new String[] {"a", "b", "a"});
    assertEquals(1, filter.observe(keys.bytes, keys.offsets, 3, verdicts));
    assertEquals(0b100, verdicts[0]);
    filter.clear();
    assertEquals(0, filter.contains(keys.bytes, keys.offsets, 3, verdicts));
    filter.close();
  }

  private static void fails(Code code, String words, Runnable call) {
    EcholessException error = assertThrows(EcholessException.class, call::run);
    assertEquals(code, error.code());
    assertEquals(true, error.getMessage().contains(words), error.getMessage());
  }
}
