package echoless;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class PartitionsTest {
  private static final String SPEC = "fingerprint:fpr=1e-8,memory=256KiB";

  private static Partitions open(String spec, int count, int first, int last) {
    return Partitions.open(spec, Hashing.DEFAULT, count, first, last);
  }

  @Test
  void aReportInSlicesBecomesTheReport() {
    long[] verdicts = Keys.words(1000);
    try (Partitions task = open("clocked:window=5000,memory=256KiB", 16, 4, 11)) {
      observe(task, 0, verdicts);
      Report report = task.report();
      // 2048 lines, of which a call reads 512.
      for (int call = 1; call <= 4; call++) {
        Report sliced = task.reportInSlices(512);
        assertEquals(call == 4, report.equals(sliced), sliced.toString());
        assertEquals(1000, sliced.observed());
        assertEquals(report.fill(), sliced.fill(), 0.2 * report.fill());
      }
      rejects("invalid mostLines=0: expected 1 or more", () -> task.reportInSlices(0));
    }
  }

  private static byte[] save(Partitions partitions, int partition) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    partitions.save(partition, out);
    return out.toByteArray();
  }

  private static byte[] save(Snapshot snapshot, int partition) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    snapshot.save(partition, out);
    return out.toByteArray();
  }

  @Test
  void aPartitionIsARangeOfHashes() {
    Random random = new Random(1);
    for (int i = 0; i < 100_000; i++) {
      long hash = random.nextLong();
      int count = 1 + random.nextInt(i % 2 == 0 ? 200 : Integer.MAX_VALUE);
      BigInteger product =
          new BigInteger(Long.toUnsignedString(hash)).multiply(BigInteger.valueOf(count));
      assertEquals(product.shiftRight(64).intValueExact(), Partitions.partitionOf(hash, count));
    }
    assertEquals(0, Partitions.partitionOf(0, 128));
    assertEquals(127, Partitions.partitionOf(-1, 128));
  }

  @Test
  void verdictsAreThoseOfTheUndividedFilter() {
    Random random = new Random(2);
    // Small enough to forget.
    try (Filter whole = Filter.of(SPEC);
        Partitions divided = open(SPEC, 64, 0, 63)) {
      for (int batch = 0; batch < 200; batch++) {
        int n = random.nextInt(2000);
        long[] hashes = new long[n];
        for (int i = 0; i < n; i++) {
          hashes[i] = Keys.mix(random.nextInt(100_000));
        }
        long[] expected = Keys.words(n);
        long[] verdicts = Keys.words(n);
        long count = whole.observe(hashes, n, expected);
        assertEquals(count, divided.observe(hashes, null, n, verdicts));
        assertArrayEquals(expected, verdicts);
      }
      Report report = divided.report();
      assertTrue(report.evictions() > 0);
      assertEquals(whole.report(), report);
      assertEquals(whole.memory(), divided.memory());
      assertEquals(whole.spec(), divided.spec());
    }
  }

  /** Each key at the owner of its partition, before and after partitions move from 3 to 2 tasks. */
  @Test
  void partitionsMoveBetweenTasks() {
    int n = 4000;
    long[] expected = Keys.words(n);
    long[] hashes = Keys.hashes(0, n);
    try (Filter whole = Filter.of(SPEC)) {
      Partitions[] tasks = {
        open(SPEC, 16, 0, 4), open(SPEC, 16, 5, 9), open(SPEC, 16, 10, 15)
      };
      whole.observe(hashes, n, expected);
      assertArrayEquals(expected, observe(tasks, hashes, 16));
      Partitions[] fewer = {open(SPEC, 16, 0, 7), open(SPEC, 16, 8, 15)};
      for (int partition = 0; partition < 16; partition++) {
        byte[] part = save(owner(tasks, partition), partition);
        owner(fewer, partition).load(partition, new ByteArrayInputStream(part));
        // The same bytes come out again.
        assertArrayEquals(part, save(owner(fewer, partition), partition));
      }
      for (Partitions task : tasks) {
        task.close();
      }
      hashes = Keys.hashes(2000, n);
      whole.observe(hashes, n, expected);
      assertArrayEquals(expected, observe(fewer, hashes, 16));
      for (Partitions task : fewer) {
        task.close();
      }
    }
  }

  private static Partitions owner(Partitions[] tasks, int partition) {
    if (tasks.length == 3) {
      return tasks[partition < 5 ? 0 : partition < 10 ? 1 : 2];
    }
    return tasks[partition / 8];
  }

  private static long[] observe(Partitions[] tasks, long[] hashes, int count) {
    long[] verdicts = Keys.words(hashes.length);
    for (int i = 0; i < hashes.length; i++) {
      Partitions task = owner(tasks, Partitions.partitionOf(hashes[i], count));
      long[] word = new long[1];
      verdicts[i / 64] |= task.observe(new long[] {hashes[i]}, null, 1, word) << i % 64;
    }
    return verdicts;
  }

  /** Time passes in the partition of a key alone, and a state has the time with the keys. */
  @Test
  void eachPartitionHasItsOwnClock() {
    String spec = "clocked:window=1000,memory=256KiB";
    long low = Keys.mix(0) >>> 1;
    long high = ~low;
    long[] word = new long[1];
    try (Partitions task = open(spec, 2, 0, 1)) {
      long[] both = {low, high};
      assertEquals(0, task.observe(both, new long[] {0, 0}, 2, word));
      // The clock of the upper half moves far on.
      assertEquals(0, task.observe(new long[] {high}, new long[] {100_000}, 1, word));
      assertEquals(1, task.observe(new long[] {low}, new long[] {500}, 1, word));
      try (Partitions other = open(spec, 2, 1, 1)) {
        other.load(1, new ByteArrayInputStream(save(task, 1)));
        assertEquals(1, other.observe(new long[] {high}, new long[] {100_500}, 1, word));
        assertEquals(0, other.observe(new long[] {high}, new long[] {200_000}, 1, word));
      }
    }
  }

  /** A copy has the state of its call, while another thread saves it and this one observes on. */
  @Test
  void aSnapshotIsOnePointOfTheStream() throws InterruptedException {
    for (String spec : new String[] {SPEC, "clocked:window=5000,memory=256KiB"}) {
      int n = 1000;
      long[] verdicts = Keys.words(n);
      try (Partitions task = open(spec, 16, 4, 11)) {
        for (int batch = 0; batch < 20; batch++) {
          observe(task, batch, verdicts);
        }
        byte[][] expected = new byte[16][];
        for (int partition = 4; partition < 12; partition++) {
          expected[partition] = save(task, partition);
        }
        try (Snapshot snapshot = task.snapshot();
            Snapshot unused = task.snapshot()) {
          byte[][] saved = new byte[16][];
          Thread saver =
              new Thread(
                  () -> {
                    for (int partition = 11; partition >= 4; partition--) {
                      saved[partition] = save(snapshot, partition);
                    }
                  });
          saver.start();
          for (int batch = 20; batch < 60; batch++) {
            observe(task, batch, verdicts);
          }
          saver.join();
          for (int partition = 4; partition < 12; partition++) {
            assertArrayEquals(expected[partition], saved[partition]);
            assertArrayEquals(expected[partition], save(unused, partition));
          }
        }
      }
    }
  }

  /** Keys of partitions 4 to 11 of 16, which come again, at ticks that go on. */
  private static void observe(Partitions task, int batch, long[] verdicts) {
    int n = 1000;
    long[] hashes = new long[n];
    long[] ticks = new long[n];
    for (int i = 0; i < n; i++) {
      long hash = Keys.mix(batch * 300L + i);
      hashes[i] = (hash >>> 1) + (1L << 62);
      ticks[i] = batch * 1000L + i;
    }
    task.observe(hashes, ticks, n, verdicts);
  }

  @Test
  void wrongOnesAreRejected() {
    long[] word = new long[1];
    try (Partitions task = open(SPEC, 16, 4, 7);
        Partitions other = open("fingerprint:fpr=1e-8,memory=128KiB", 16, 4, 7)) {
      long of4 = (4L << 60) + 77_777_777;
      long other4 = (5L << 60) - 33_333_333;
      assertEquals(0, task.observe(new long[] {of4, other4}, null, 2, word));
      rejects(
          "invalid partition=8 of key 1: expected one of 4 to 7 of 16",
          () -> task.observe(new long[] {of4, 8L << 60}, null, 2, word));
      assertEquals(2, task.report().observed());
      rejects("invalid partition=3: expected one of 4 to 7 of 16", () -> save(task, 3));
      rejects("invalid partition=-1: expected 0 or more", () -> save(task, -1));
      byte[] part = save(task, 4);
      rejects(
          "invalid state of lines 1024..1280: expected 1280..1536, partition 5 of 16",
          () -> task.load(5, new ByteArrayInputStream(part)));
      EcholessException error =
          assertThrows(
              EcholessException.class, () -> other.load(4, new ByteArrayInputStream(part)));
      assertEquals(Code.STATE_MISMATCH, error.code());
      assertTrue(error.getMessage().contains("memory=256KiB: expected memory=128KiB"), error::toString);
      try (Partitions seeded = Partitions.open(SPEC, Hashing.seeded(1), 16, 4, 7)) {
        error =
            assertThrows(
                EcholessException.class, () -> seeded.load(4, new ByteArrayInputStream(part)));
        assertEquals(Code.STATE_MISMATCH, error.code());
      }
      byte[] torn = java.util.Arrays.copyOf(part, part.length - 1);
      error =
          assertThrows(EcholessException.class, () -> task.load(4, new ByteArrayInputStream(torn)));
      assertEquals(Code.INVALID_STATE, error.code());
      assertEquals(2, task.observe(new long[] {of4, other4}, null, 2, word));
      Snapshot snapshot = task.snapshot();
      rejects("invalid partition=8: expected one of 4 to 7 of 16", () -> save(snapshot, 8));
      save(snapshot, 4);
      rejects(
          "invalid partition=4: expected one that was not saved from this snapshot yet",
          () -> save(snapshot, 4));
      snapshot.close();
      rejects("invalid snapshot=closed: expected an open one", () -> save(snapshot, 4));
    }
    for (int[] bad : new int[][] {{16, 5, 4}, {16, 16, 16}, {16, -1, 3}, {0, 0, 0}, {-4, 0, 0}}) {
      assertThrows(EcholessException.class, () -> open(SPEC, bad[0], bad[1], bad[2]));
    }
    assertThrows(EcholessException.class, () -> open("fingerprint", 16, 0, 15));
    rejects(
        "invalid memory=262144B: expected a multiple of 6400 bytes, so that 100 partitions are"
            + " equal: 256000B or 262400B",
        () -> open(SPEC, 100, 0, 9));
  }

  private static void rejects(String text, Executable call) {
    assertEquals(text, assertThrows(EcholessException.class, call).getMessage());
  }
}
