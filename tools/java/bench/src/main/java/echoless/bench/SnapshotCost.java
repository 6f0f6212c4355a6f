package echoless.bench;

import echoless.Hashing;
import echoless.Partitions;
import echoless.Snapshot;
import java.io.OutputStream;
import java.util.Arrays;
import java.util.SplittableRandom;

/** What a snapshot costs a task that goes on: calls of 1,024 fresh keys while all is saved. */
public final class SnapshotCost {
  private static final int BATCH = 1024;
  private static final int COUNT = 128;

  private SnapshotCost() {}

  public static void main(String[] args) throws InterruptedException {
    String spec = args[0];
    SplittableRandom random = new SplittableRandom(1);
    try (Partitions task = Partitions.open(spec, Hashing.DEFAULT, COUNT, 0, COUNT - 1)) {
      long batches = task.memory() / 4 / BATCH;
      for (long batch = 0; batch < batches; batch++) {
        observe(task, random);
      }
      report("before", task, random, null);
      for (int round = 0; round < 3; round++) {
        long start = System.nanoTime();
        Snapshot snapshot = task.snapshot();
        System.out.printf("snapshot() %.3f ms%n", (System.nanoTime() - start) / 1e6);
        Thread saver =
            new Thread(
                () -> {
                  long begin = System.nanoTime();
                  for (int partition = 0; partition < COUNT; partition++) {
                    snapshot.save(partition, OutputStream.nullOutputStream());
                  }
                  System.out.printf("saved in %.0f ms%n", (System.nanoTime() - begin) / 1e6);
                  snapshot.close();
                });
        saver.start();
        report("while it is saved", task, random, saver);
      }
    }
  }

  private static long observe(Partitions task, SplittableRandom random) {
    long[] hashes = random.longs(BATCH).toArray();
    long start = System.nanoTime();
    task.observe(hashes, null, BATCH, new long[BATCH / 64]);
    return System.nanoTime() - start;
  }

  /** The times of calls, while the saver lives or of 2,000 without one. */
  private static void report(
      String when, Partitions task, SplittableRandom random, Thread saver)
      throws InterruptedException {
    long[] times = new long[1 << 20];
    int count = 0;
    while (count < times.length && (saver == null ? count < 2000 : saver.isAlive())) {
      times[count++] = observe(task, random);
    }
    times = Arrays.copyOf(times, count);
    long first = times[0];
    Arrays.sort(times);
    System.out.printf(
        "%s: %d calls, first %.3f ms, median %.3f, 99 %% %.3f, longest %.3f%n",
        when,
        count,
        first / 1e6,
        times[count / 2] / 1e6,
        times[count * 99 / 100] / 1e6,
        times[count - 1] / 1e6);
    if (saver != null) {
      saver.join();
    }
  }
}
