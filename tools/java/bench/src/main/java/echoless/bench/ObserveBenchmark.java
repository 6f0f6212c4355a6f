package echoless.bench;

import echoless.Filter;
import echoless.Hasher;
import echoless.Hashing;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * A call with 1,024 keys. The twin in Rust, with the same keys and filters, is {@code
 * native/benches/twin.rs}.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class ObserveBenchmark {
  private static final int BATCH = 1024;
  private static final int BATCHES = 1024;

  @Param({"1MiB", "64MiB"})
  public String memory;

  private Filter filter;
  private final long[][] hashes = new long[BATCHES][BATCH];
  private final ByteBuffer[] direct = new ByteBuffer[BATCHES];
  private final byte[][] packed = new byte[BATCHES][16 * BATCH];
  private final int[] offsets = new int[BATCH + 1];
  private final long[] verdicts = new long[BATCH / 64];
  private int next;

  /** Every other key comes in each batch, the rest once in all batches. */
  @Setup
  public void setUp() {
    filter = Filter.of("fingerprint:fpr=1e-8,memory=" + memory);
    for (int batch = 0; batch < BATCHES; batch++) {
      long[] ids = new long[BATCH];
      direct[batch] = ByteBuffer.allocateDirect(8 * BATCH).order(ByteOrder.nativeOrder());
      for (int i = 0; i < BATCH; i++) {
        ids[i] = i % 2 == 0 ? (long) batch * BATCH + i : i;
        ByteBuffer.wrap(packed[batch]).putLong(16 * i, ids[i]);
        offsets[i + 1] = 16 * (i + 1);
      }
      Hasher.hash(ids, BATCH, Hashing.DEFAULT, hashes[batch]);
      for (int i = 0; i < BATCH; i++) {
        direct[batch].putLong(8 * i, hashes[batch][i]);
      }
    }
  }

  @TearDown
  public void tearDown() {
    filter.close();
  }

  private int nextBatch() {
    next = (next + 1) % BATCHES;
    return next;
  }

  @Benchmark
  public long hashes() {
    return filter.observe(hashes[nextBatch()], BATCH, verdicts);
  }

  @Benchmark
  public long direct() {
    return filter.observe(direct[nextBatch()], BATCH, verdicts);
  }

  @Benchmark
  public long packed() {
    return filter.observe(packed[nextBatch()], offsets, BATCH, verdicts);
  }

  /** What a call costs that judges nothing. */
  @Benchmark
  public long none() {
    return filter.observe(hashes[0], 0, verdicts);
  }
}
