package echoless;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class FilterTest {
  private static final String SPEC = "fingerprint:fpr=1e-8,memory=4MiB";

  @Test
  void verdictsAreThoseOfASet() {
    for (int seed = 0; seed < 20; seed++) {
      Random random = new Random(seed);
      Set<Long> seen = new HashSet<>();
      try (Filter filter = Filter.of(SPEC)) {
        for (int batch = 0; batch < 20; batch++) {
          int n = random.nextInt(3000);
          long[] hashes = new long[n + random.nextInt(3)];
          for (int i = 0; i < n; i++) {
            hashes[i] = Keys.mix(random.nextInt(20_000));
          }
          // Longer than the batch needs: the words behind it are not touched.
          long[] verdicts = new long[Keys.words(n).length + 1];
          java.util.Arrays.fill(verdicts, -1);
          long[] found = Keys.words(n);
          filter.contains(hashes, n, found);
          Set<Long> before = new HashSet<>(seen);
          long count = filter.observe(hashes, n, verdicts);
          long expected = 0;
          for (int i = 0; i < n; i++) {
            boolean isDuplicate = !seen.add(hashes[i]);
            assertEquals(isDuplicate, Keys.isDuplicate(verdicts, i));
            assertEquals(before.contains(hashes[i]), Keys.isDuplicate(found, i));
            expected += isDuplicate ? 1 : 0;
          }
          assertEquals(expected, count);
          assertEquals(-1, verdicts[verdicts.length - 1]);
          for (int i = n; i < 64 * (verdicts.length - 1); i++) {
            assertFalse(Keys.isDuplicate(verdicts, i));
          }
        }
      }
    }
  }

  @Test
  void aWindowForgetsWhatAMapOfTimesForgets() {
    Random random = new Random(7);
    Map<Long, Long> last = new HashMap<>();
    try (Filter filter = Filter.of("stamped:window=1000,memory=4MiB")) {
      long tick = 0;
      for (int batch = 0; batch < 50; batch++) {
        int n = 500;
        long[] hashes = new long[n];
        long[] ticks = new long[n];
        for (int i = 0; i < n; i++) {
          hashes[i] = Keys.mix(random.nextInt(3000));
          tick += random.nextInt(10);
          ticks[i] = tick;
        }
        long[] verdicts = Keys.words(n);
        filter.observe(hashes, ticks, n, verdicts);
        for (int i = 0; i < n; i++) {
          Long before = last.get(hashes[i]);
          long age = before == null ? Long.MAX_VALUE : ticks[i] - before;
          // Whether a key at the very end of the window is found depends on the granule.
          if (age < 1000) {
            assertTrue(Keys.isDuplicate(verdicts, i), "age " + age);
          } else if (age > 1100) {
            assertFalse(Keys.isDuplicate(verdicts, i), "age " + age);
          }
          last.put(hashes[i], ticks[i]);
        }
      }
    }
  }

  @Test
  void allFormsOfAKeyAreTheSameKey() {
    StringBuilder text = new StringBuilder();
    int n = 5000;
    int[] offsets = new int[n + 1];
    for (int i = 0; i < n; i++) {
      text.append("x".repeat(i % 40)).append(i);
      offsets[i + 1] = text.length();
    }
    byte[] packed = Keys.bytes(text.toString());
    for (Hashing hashing : new Hashing[] {Hashing.DEFAULT, Hashing.seeded(3), secret(1)}) {
      long[] hashes = new long[n];
      Hasher.hash(packed, offsets, n, hashing, hashes);
      byte[] key = java.util.Arrays.copyOfRange(packed, offsets[77], offsets[78]);
      assertEquals(hashes[77], Hasher.hash(key, hashing));
      ByteBuffer direct = ByteBuffer.allocateDirect(16 + 8 * n).order(ByteOrder.nativeOrder());
      direct.position(8);
      for (int i = 0; i < n; i++) {
        direct.putLong(8 + 8 * i, hashes[i]);
      }
      try (Filter filter = Filter.of(SPEC, hashing)) {
        long[] verdicts = Keys.words(n);
        assertEquals(0, filter.observe(packed, offsets, n, verdicts));
        assertEquals(n, filter.contains(packed, offsets, n, verdicts));
        assertEquals(n, filter.observe(hashes, n, verdicts));
        assertEquals(n, filter.observe(direct, n, verdicts));
        assertEquals(8, direct.position());
        assertEquals(-1L, verdicts[0]);
      }
    }
  }

  private static Hashing secret(int first) {
    byte[] secret = new byte[16];
    secret[0] = (byte) first;
    return Hashing.secret(secret);
  }

  @Test
  void hashingDecidesHashes() {
    byte[] key = Keys.bytes("call 17");
    long hash = Hasher.hash(key);
    assertEquals(hash, Hasher.hash(key, Hashing.seeded(0)));
    assertNotEquals(hash, Hasher.hash(key, Hashing.seeded(1)));
    assertNotEquals(Hasher.hash(key, secret(1)), Hasher.hash(key, secret(2)));
    long[] numbers = {17, 18};
    long[] hashes = new long[2];
    Hasher.hash(numbers, 2, Hashing.DEFAULT, hashes);
    assertNotEquals(17, hashes[0]);
    assertNotEquals(hashes[0], hashes[1]);
  }

  /** The same keys are in {@code tools/foreign/tests/foreign.rs}, with the same numbers. */
  @Test
  void verdictsAndHashesAreThoseOfRust() {
    assertEquals(0xe7e239d5637d0702L, Hasher.hash(Keys.bytes("call 17")));
    int n = 60_000;
    long[] hashes = new long[n];
    for (int i = 0; i < n; i++) {
      hashes[i] = Keys.mix(7919L * i % 20_011);
    }
    long[] verdicts = Keys.words(n);
    try (Filter filter = Filter.of("fingerprint:fpr=1e-8,memory=64KiB")) {
      assertEquals(7141, filter.observe(hashes, n, verdicts));
    }
    long folded = 0;
    for (long word : verdicts) {
      folded = 31 * folded + word;
    }
    assertEquals(0xd7900864e0f23f67L, folded);
  }

  @Test
  void reportsSpecificationsAndMemory() {
    try (Filter filter = Filter.of("fingerprint:fpr=1e-8,memory=1MiB")) {
      long[] verdicts = Keys.words(100);
      filter.observe(Keys.hashes(0, 100), 100, verdicts);
      filter.observe(Keys.hashes(50, 100), 100, verdicts);
      Report report = filter.report();
      assertEquals(200, report.observed());
      assertEquals(150, report.fresh());
      assertEquals(0, report.evictions());
      assertEquals(1 << 20, report.memory());
      assertEquals(1 << 20, filter.memory());
      assertEquals(0, report.windowTicks());
      assertTrue(report.fill() > 0 && report.fill() < 0.01, report.toString());
      assertTrue(report.expectedFpr() < 1e-8, report.toString());
      assertTrue(filter.spec().contains("memory=1MiB"), filter.spec());
      filter.clear();
      assertEquals(0, filter.report().observed());
    }
    try (Filter filter = Filter.of("clocked:window=600,memory=1MiB")) {
      assertEquals(600, filter.report().windowTicks());
      long[] verdicts = new long[1];
      assertEquals(0, filter.observe(new long[] {Keys.mix(1)}, new long[] {10}, 1, verdicts));
      filter.advanceTo(5000);
      assertEquals(0, filter.contains(new long[] {Keys.mix(1)}, 1, verdicts));
    }
    // A filter without a window.
    try (Filter filter = Filter.of("fingerprint:memory=1MiB")) {
      assertTrue(Double.isNaN(filter.report().mostFpr()));
    }
  }

  @Test
  void aSharedFilterForgetsAfterItsWindow() {
    try (SharedFilter filter = SharedFilter.of("stamped:window=60,memory=1MiB")) {
      long[] keys = {7, 7, 7};
      long[] verdicts = new long[1];
      assertEquals(1, filter.observe(keys, new long[] {100, 160, 221}, 3, verdicts));
      assertEquals(2, verdicts[0]);
      filter.advanceTo(1000);
      assertEquals(0, filter.contains(keys, 3, verdicts));
      assertEquals(60, filter.report().windowTicks());
    }
  }

  @Test
  void threadsShareASharedFilter() throws InterruptedException {
    int n = 1000;
    AtomicLong fresh = new AtomicLong();
    try (SharedFilter filter = SharedFilter.of("row4x16:memory=1MiB")) {
      Thread[] threads = new Thread[4];
      for (int t = 0; t < threads.length; t++) {
        threads[t] =
            new Thread(
                () -> {
                  long[] verdicts = Keys.words(n);
                  for (int from = 0; from < 20_000; from += n) {
                    fresh.addAndGet(n - filter.observe(Keys.hashes(from, n), n, verdicts));
                  }
                });
        threads[t].start();
      }
      for (Thread thread : threads) {
        thread.join();
      }
      assertEquals(filter.report().fresh(), fresh.get());
      // A few keys are taken for others, and none is fresh twice.
      assertTrue(fresh.get() > 19_900 && fresh.get() <= 20_000, fresh.toString());
      long[] verdicts = Keys.words(n);
      assertEquals(n, filter.contains(Keys.hashes(0, n), n, verdicts));
      assertEquals("row4x16:memory=1MiB", filter.spec());
      assertEquals(1 << 20, filter.memory());
      ByteBuffer direct = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder());
      direct.putLong(0, Keys.mix(0));
      assertEquals(1, filter.observe(direct, 1, verdicts));
      int[] offsets = {0, 1};
      assertEquals(0, filter.contains(new byte[1], offsets, 1, verdicts));
      assertEquals(0, filter.observe(new byte[1], offsets, 1, verdicts));
      filter.clear();
      assertEquals(0, filter.report().fresh());
      assertEquals(-1, filter.report().observed());
    }
  }

  @Test
  void aSavedFilterGoesOn() {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    long[] verdicts = Keys.words(1000);
    try (Filter filter = Filter.of(SPEC)) {
      filter.observe(Keys.hashes(0, 1000), 1000, verdicts);
      filter.save(out, Keys.bytes("offset 4711"));
    }
    java.io.ByteArrayInputStream in = new java.io.ByteArrayInputStream(out.toByteArray());
    try (Filter filter = Filter.load(in)) {
      assertArrayEquals(Keys.bytes("offset 4711"), filter.savedBytes());
      assertEquals(1000, filter.observe(Keys.hashes(0, 1000), 1000, verdicts));
      assertEquals(2000, filter.report().observed());
    }
  }

  @Test
  void aSavedSharedFilterGoesOn() {
    String spec = "row4x16:memory=1MiB";
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    long[] expected = Keys.words(1000);
    long[] verdicts = Keys.words(1000);
    try (SharedFilter filter = SharedFilter.of(spec, Hashing.seeded(3))) {
      filter.observe(Keys.hashes(0, 1000), 1000, verdicts);
      filter.save(out, Keys.bytes("offset 4711"));
      java.io.ByteArrayInputStream in = new java.io.ByteArrayInputStream(out.toByteArray());
      try (SharedFilter loaded = SharedFilter.load(in, Hashing.seeded(3), 1 << 20)) {
        assertArrayEquals(Keys.bytes("offset 4711"), loaded.savedBytes());
        assertEquals(spec, loaded.spec());
        assertEquals(filter.report(), loaded.report());
        // It has the verdicts of the one that was saved.
        long duplicates = filter.observe(Keys.hashes(500, 1000), 1000, expected);
        assertEquals(duplicates, loaded.observe(Keys.hashes(500, 1000), 1000, verdicts));
        assertArrayEquals(expected, verdicts);
        assertTrue(duplicates >= 500, "" + duplicates);
      }
      out.reset();
      filter.save(out);
      assertEquals(0, filter.savedBytes().length);
    }
  }
}
