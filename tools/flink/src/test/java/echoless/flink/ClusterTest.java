package echoless.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.LongStream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.StateBackendOptions;
import org.apache.flink.configuration.StateRecoveryOptions;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.metrics.Metric;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.testutils.InMemoryReporter;
import org.apache.flink.runtime.testutils.MiniClusterResourceConfiguration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.test.junit5.InjectMiniCluster;
import org.apache.flink.test.junit5.MiniClusterExtension;
import org.apache.flink.util.CloseableIterator;
import org.apache.flink.util.ExceptionUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Whole jobs on a cluster in this process: two task managers with two slots each. */
class ClusterTest {
  private static final InMemoryReporter METRICS = InMemoryReporter.createWithRetainedMetrics();

  @RegisterExtension
  static final MiniClusterExtension CLUSTER =
      new MiniClusterExtension(
          new MiniClusterResourceConfiguration.Builder()
              .setConfiguration(METRICS.addToConfiguration(new Configuration()))
              .setNumberTaskManagers(2)
              .setNumberSlotsPerTaskManager(2)
              .build());

  private static final Calls CALLS = new Calls(20_000, 100, 0);

  /** Records that are up to 50 s older than the clock, with a window of a minute. */
  private static final Calls DISORDERED = new Calls(500, 100, 50_000);

  private static final Duration NONE = Duration.ZERO;

  @TempDir Path folder;

  private static StreamExecutionEnvironment environment(Configuration config) {
    return StreamExecutionEnvironment.getExecutionEnvironment(config);
  }

  /** Checkpoints all the time, and restarts without end. */
  private static Configuration durable() {
    Configuration config = new Configuration();
    config.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofMillis(100));
    config.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
    config.set(
        RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, Integer.MAX_VALUE);
    config.set(
        RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofMillis(10));
    return config;
  }

  private static Configuration withoutRestart() {
    Configuration config = new Configuration();
    config.set(RestartStrategyOptions.RESTART_STRATEGY, "none");
    return config;
  }

  /** Each record is there once: not more, not less. */
  private void assertOutput(Set<Long> expected) {
    List<Long> output = CallsJob.read(folder);
    assertEquals(expected, Set.copyOf(output));
    assertEquals(expected.size(), output.size());
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 4})
  void verdictsAreThoseOfOneFilter(int parallelism) throws Exception {
    CallsJob job = CallsJob.fast(CALLS, 100_000, NONE);
    StreamExecutionEnvironment env = environment(withoutRestart());
    job.build(env, parallelism, CALLS::key, folder);
    env.execute();
    assertOutput(Oracle.exact(CALLS, 100_000));
    assertOutput(Oracle.engine(job.settings(), CALLS, 100_000));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 4})
  void verdictsInAWindowAreThoseOfOneFilter(int parallelism) throws Exception {
    CallsJob job = CallsJob.fast(DISORDERED, 100_000, Duration.ofMinutes(1));
    StreamExecutionEnvironment env = environment(withoutRestart());
    job.build(env, parallelism, DISORDERED::key, folder);
    env.execute();
    Set<Long> expected = Oracle.engine(job.settings(), DISORDERED, 100_000);
    assertTrue(expected.size() > 10 * 500);
    assertOutput(expected);
  }

  @Test
  void ofSeveralSourcesOneRecordOfAKeyIsFresh() throws Exception {
    CallsJob job = CallsJob.fast(CALLS, 100_000, NONE).sources(4);
    StreamExecutionEnvironment env = environment(withoutRestart());
    job.build(env, 4, CALLS::key, folder);
    env.execute();
    List<Long> keys = CallsJob.read(folder).stream().map(CALLS::keyNumber).sorted().toList();
    List<Long> expected =
        Oracle.exact(CALLS, 100_000).stream().map(CALLS::keyNumber).sorted().toList();
    assertEquals(expected, keys);
  }

  /** One is ahead by more than two hours; each has duplicates of its own. */
  @ParameterizedTest
  @ValueSource(ints = {1, 4})
  void sourcesOutOfStepHaveTheVerdictsOfAnExactOperator(int parallelism) throws Exception {
    Calls calls = new Calls(500, 100, 0);
    Duration window = Duration.ofMinutes(1);
    Duration skew = Duration.ofHours(5);
    long count = 50_000;
    StreamExecutionEnvironment env = environment(withoutRestart());
    env.setMaxParallelism(CallsJob.KEY_GROUPS);
    WatermarkStrategy<Long> times =
        WatermarkStrategy.<Long>forMonotonousTimestamps()
            .withTimestampAssigner((record, before) -> calls.time(record));
    List<Long> records = new ArrayList<>();
    DataStream<Long> both = null;
    for (long first : new long[] {0, 2 * count}) {
      LongStream.range(first, first + count).forEach(records::add);
      DataStream<Long> source =
          env.fromSource(
                  new DataGeneratorSource<>(index -> index + first, count, Types.LONG),
                  times,
                  "calls from " + first)
              .setParallelism(1);
      both = both == null ? source : both.union(source);
    }
    Settings settings =
        Settings.of(
            16 << 20, 1e-8, window.toMillis(), 0, skew.toMillis(), false, CallsJob.KEY_GROUPS, 0,
            null);
    // A line has room for eight times of a key, so a key comes within 100 s only.
    KeyFunction<Long> key =
        record ->
            ByteBuffer.allocate(8).putLong(record / 1000 * 500 + calls.keyNumber(record)).array();
    Set<Long> expected =
        Oracle.exact(
            settings, records, record -> List.of(record / 1000, calls.keyNumber(record)), calls::time);
    List<Long> fresh = new ArrayList<>();
    try (CloseableIterator<Long> output =
        Deduplicate.of(both)
            .key(key)
            .memory("16MiB")
            .window(window)
            .skew(skew)
            .build()
            .setParallelism(parallelism)
            .executeAndCollect()) {
      output.forEachRemaining(fresh::add);
    }
    assertTrue(expected.size() < 0.7 * 2 * count);
    assertEquals(expected, Set.copyOf(fresh));
    assertEquals(expected.size(), fresh.size());
  }

  /** The default storage takes 5 MiB of each task; the job says so before its first record. */
  @Test
  void aStateThatTheStorageOfCheckpointsDoesNotTakeIsAnError() throws Exception {
    Configuration config = durable();
    config.set(RestartStrategyOptions.RESTART_STRATEGY, "none");
    // The cluster of tests has another default.
    config.set(CheckpointingOptions.CHECKPOINT_STORAGE, "jobmanager");
    CallsJob job = CallsJob.fast(CALLS, 100_000, NONE).memory("8MiB");
    StreamExecutionEnvironment env = environment(config);
    job.build(env, 1, CALLS::key, folder);
    JobClient client = env.executeAsync();
    Exception failure =
        assertThrows(ExecutionException.class, () -> client.getJobExecutionResult().get());
    String text =
        "invalid execution.checkpointing.storage: jobmanager: the state of this task takes up to "
            + "8404992 bytes, and this storage at most 5242880: expected filesystem, with "
            + "execution.checkpointing.dir";
    assertTrue(ExceptionUtils.findThrowableWithMessage(failure, text).isPresent());

    config.set(CheckpointingOptions.CHECKPOINT_STORAGE, "filesystem");
    config.set(
        CheckpointingOptions.CHECKPOINTS_DIRECTORY, folder.resolve("points").toUri().toString());
    StreamExecutionEnvironment other = environment(config);
    job.build(other, 1, CALLS::key, folder.resolve("out"));
    other.execute();
    assertEquals(
        Oracle.exact(CALLS, 100_000), Set.copyOf(CallsJob.read(folder.resolve("out"))));
  }

  @Test
  void aKilledTaskManagerLosesAndDoublesNothing(@InjectMiniCluster MiniCluster cluster)
      throws Exception {
    int kills = Integer.getInteger("echoless.kills", 3);
    long records = 120_000L * (kills + 1);
    Calls calls = new Calls(records / 3, 100, 30_000);
    Random random = new Random(41);
    CallsJob job = CallsJob.fast(calls, records, Duration.ofHours(1)).perCheckpoint(6_000);
    StreamExecutionEnvironment env = environment(durable());
    job.build(env, 4, calls::key, folder);
    JobClient client = env.executeAsync();
    for (int kill = 0; kill < kills; kill++) {
      awaitMoreOutput(folder);
      Thread.sleep(random.nextInt(700));
      assertFalse(client.getJobStatus().get().isGloballyTerminalState());
      cluster.terminateTaskManager(kill).get();
      cluster.startTaskManager();
    }
    client.getJobExecutionResult().get();
    assertOutput(Oracle.engine(job.settings(), calls, records));
  }

  @ParameterizedTest
  @ValueSource(strings = {"hashmap", "rocksdb"})
  void aSavepointMovesBetweenParallelisms(String backend) throws Exception {
    long records = 120_000;
    CallsJob job = CallsJob.fast(CALLS, records, Duration.ofHours(1)).perCheckpoint(6_000);
    String savepoint = null;
    int step = 0;
    for (int parallelism : new int[] {2, 4, 1}) {
      Configuration config = durable();
      config.set(StateBackendOptions.STATE_BACKEND, backend);
      if (savepoint != null) {
        config.set(StateRecoveryOptions.SAVEPOINT_PATH, savepoint);
      }
      StreamExecutionEnvironment env = environment(config);
      job.build(env, parallelism, CALLS::key, folder.resolve("out"));
      JobClient client = env.executeAsync();
      step++;
      if (step < 3) {
        awaitMoreOutput(folder.resolve("out"));
        SavepointFormatType format =
            step == 1 ? SavepointFormatType.CANONICAL : SavepointFormatType.NATIVE;
        savepoint =
            client
                .stopWithSavepoint(false, folder.resolve("savepoints").toUri().toString(), format)
                .get();
      } else {
        client.getJobExecutionResult().get();
      }
    }
    List<Long> output = CallsJob.read(folder.resolve("out"));
    Set<Long> expected = Oracle.engine(job.settings(), CALLS, records);
    assertEquals(expected, Set.copyOf(output));
    assertEquals(expected.size(), output.size());
  }

  /** Waits until the job has committed some records. */
  private static void awaitMoreOutput(Path out) throws InterruptedException {
    int before = CallsJob.read(out).size();
    while (CallsJob.read(out).size() < before + 100) {
      Thread.sleep(20);
    }
  }

  @Test
  void aSavepointOfOtherSettingsIsRejected() throws Exception {
    CallsJob job = CallsJob.fast(CALLS, 1_000_000, NONE).perCheckpoint(5_000);
    StreamExecutionEnvironment env = environment(durable());
    job.build(env, 2, CALLS::key, folder.resolve("out"));
    JobClient client = env.executeAsync();
    awaitMoreOutput(folder.resolve("out"));
    String savepoint =
        client
            .stopWithSavepoint(
                false,
                folder.resolve("savepoints").toUri().toString(),
                SavepointFormatType.CANONICAL)
            .get();

    Configuration config = withoutRestart();
    config.set(StateRecoveryOptions.SAVEPOINT_PATH, savepoint);
    StreamExecutionEnvironment other = environment(config);
    job.memory("8MiB").build(other, 2, CALLS::key, folder.resolve("out"));
    JobClient rejected = other.executeAsync();
    Exception failure =
        assertThrows(ExecutionException.class, () -> rejected.getJobExecutionResult().get());
    assertTrue(
        ExceptionUtils.findThrowableWithMessage(
                failure, "the state was saved with another memory")
            .isPresent());
  }

  private static final AtomicInteger KEYS = new AtomicInteger();

  @Test
  void aFailureInTheKeyFunctionRestartsTheJob() throws Exception {
    CallsJob job = CallsJob.fast(CALLS, 60_000, NONE).perCheckpoint(6_000);
    StreamExecutionEnvironment env = environment(durable());
    KEYS.set(0);
    job.build(
        env,
        2,
        record -> {
          if (KEYS.incrementAndGet() % 50_000 == 0) {
            throw new IllegalArgumentException("a faulty record");
          }
          return CALLS.key(record);
        },
        folder);
    env.execute();
    assertTrue(KEYS.get() > 120_000);
    assertOutput(Oracle.exact(CALLS, 60_000));
  }

  @Test
  void flinkHasTheMetrics() throws Exception {
    StreamExecutionEnvironment env = environment(withoutRestart());
    CallsJob job = CallsJob.fast(CALLS, 100_000, NONE);
    job.build(env, 2, CALLS::key, folder);
    JobClient client = env.executeAsync("metrics");
    client.getJobExecutionResult().get();
    int fresh = Oracle.exact(CALLS, 100_000).size();
    assertEquals(fresh, sum(client, "fresh"));
    assertEquals(100_000 - fresh, sum(client, "duplicates"));
    assertEquals(0, sum(client, "late"));
    for (String gauge :
        List.of("evictions", "fill", "missAge", "expectedFalseDuplicates", "snapshotNanos")) {
      List<Metric> found = metrics(client, gauge);
      assertEquals(2, found.size(), gauge);
      for (Metric metric : found) {
        assertTrue(((Number) ((Gauge<?>) metric).getValue()).doubleValue() >= 0, gauge);
      }
    }
  }

  private static List<Metric> metrics(JobClient client, String name) {
    return METRICS.findMetrics(client.getJobID(), ".*deduplicate\\..*echoless\\." + name).values().stream()
        .toList();
  }

  private static long sum(JobClient client, String name) {
    return metrics(client, name).stream().mapToLong(one -> ((Counter) one).getCount()).sum();
  }
}
