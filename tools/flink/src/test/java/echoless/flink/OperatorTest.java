package echoless.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import echoless.Hasher;
import echoless.Partitions;
import echoless.Report;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RunnableFuture;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.runtime.checkpoint.CheckpointOptions;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.runtime.operators.testutils.MockEnvironment;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.streaming.api.operators.Input;
import org.apache.flink.runtime.state.memory.MemCheckpointStreamFactory;
import org.apache.flink.runtime.util.TestingTaskManagerRuntimeInfo;
import org.apache.flink.streaming.api.operators.OperatorSnapshotFinalizer;
import org.apache.flink.streaming.api.operators.OperatorSnapshotFutures;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.LatencyMarker;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus;
import org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;
import org.apache.flink.util.OutputTag;
import org.junit.jupiter.api.Test;

/** One task at a time, in Flink's harness. */
class OperatorTest {
  private static final int KEY_GROUPS = 16;
  private static final Calls CALLS = new Calls(2000, 100, 0);
  private static final OutputTag<Long> DUPLICATES = new OutputTag<>("duplicates", Types.LONG);
  private static final OutputTag<Long> LATE = new OutputTag<>("late", Types.LONG);

  private static final Settings ENDLESS = Settings.of(1 << 20, 1e-8, 0, 0, 0, false, KEY_GROUPS, 0, null);

  /** A window of a minute, which is 600 records. */
  private static final Settings MINUTE =
      Settings.of(1 << 20, 1e-8, 60_000, 0, 0, false, KEY_GROUPS, 0, null);

  /** The same with keys that are judged at their own times. */
  private static final Settings SKEWED =
      Settings.of(1 << 20, 1e-8, 60_000, 0, 600_000, false, KEY_GROUPS, 0, null);

  private static KeyedOneInputStreamOperatorTestHarness<Integer, Long, Long> task(
      Settings settings, KeyFunction<Long> keys, Late late, int parallelism, int index)
      throws Exception {
    return new KeyedOneInputStreamOperatorTestHarness<>(
        new DeduplicateOperator<>(settings, keys, policies(late)),
        new KeyGroups<>(keys, settings),
        Types.INT,
        KEY_GROUPS,
        parallelism,
        index);
  }

  private static DeduplicateOperator.Policies<Long> policies(Late late) {
    return new DeduplicateOperator.Policies<>(
        Policy.of(late, LATE),
        Policy.of(Ahead.JUDGE, null),
        Policy.of(Unjudged.FAIL, null),
        0,
        DUPLICATES);
  }

  private static KeyedOneInputStreamOperatorTestHarness<Integer, Long, Long> task(
      Settings settings) throws Exception {
    return task(settings, CALLS::key, Late.PASS, 1, 0);
  }

  /** Feeds records until the end of the batch, and returns the fresh ones. */
  private static List<Long> feed(
      KeyedOneInputStreamOperatorTestHarness<Integer, Long, Long> task, long from, long to)
      throws Exception {
    for (long record = from; record < to; record++) {
      task.processElement(new StreamRecord<>(record, CALLS.time(record)));
    }
    task.prepareSnapshotPreBarrier(0);
    List<Long> fresh = task.extractOutputValues();
    task.getOutput().clear();
    return fresh;
  }

  private static List<Long> side(
      KeyedOneInputStreamOperatorTestHarness<Integer, Long, Long> task, OutputTag<Long> tag) {
    List<Long> records = new ArrayList<>();
    if (task.getSideOutput(tag) != null) {
      task.getSideOutput(tag).forEach(record -> records.add(record.getValue()));
    }
    return records;
  }

  @Test
  void freshRecordsAndDuplicatesKeepTheirOrder() throws Exception {
    try (var task = task(ENDLESS)) {
      task.open();
      List<Long> fresh = feed(task, 0, 10_000);
      assertEquals(Oracle.exact(CALLS, 10_000), new HashSet<>(fresh));
      assertEquals(fresh.stream().sorted().toList(), fresh);
      List<Long> duplicates = side(task, DUPLICATES);
      assertEquals(10_000 - fresh.size(), duplicates.size());
      assertEquals(duplicates.stream().sorted().toList(), duplicates);
    }
  }

  @Test
  void aSecretRoutesAndJudges() throws Exception {
    HashKey secret = HashKey.of(new byte[16]);
    Settings keyed = Settings.of(1 << 20, 1e-8, 0, 0, 0, false, KEY_GROUPS, 0, secret);
    OperatorSubtaskState state;
    Set<Long> fresh = new HashSet<>();
    try (var task = task(keyed)) {
      task.open();
      fresh.addAll(feed(task, 0, 5_000));
      state = task.snapshot(1, 1);
    }
    try (var task = task(keyed)) {
      task.initializeState(state);
      task.open();
      fresh.addAll(feed(task, 5_000, 10_000));
    }
    assertEquals(Oracle.exact(CALLS, 10_000), fresh);
    try (var task = task(ENDLESS)) {
      Exception failure = assertThrows(Exception.class, () -> task.initializeState(state));
      assertEquals(
          "the state was saved with a hashKey, and the job has none", failure.getMessage());
    }
  }

  @Test
  void aWindowForgets() throws Exception {
    try (var task = task(MINUTE)) {
      task.open();
      List<Long> fresh = feed(task, 0, 10_000);
      assertEquals(Oracle.engine(MINUTE, CALLS, 10_000), new HashSet<>(fresh));
      assertTrue(fresh.size() > Oracle.exact(CALLS, 10_000).size());
    }
  }

  @Test
  void nothingOvertakesARecord() throws Exception {
    try (var task = task(ENDLESS)) {
      task.open();
      List<Object> expected = new ArrayList<>();
      LatencyMarker marker = new LatencyMarker(1, new OperatorID(), 0);
      List<ThrowingAction> events =
          List.of(
              () -> task.processWatermark(new Watermark(5)),
              () -> ((Input<?>) task.getOperator()).processLatencyMarker(marker),
              () -> task.processWatermarkStatus(WatermarkStatus.IDLE));
      for (int event = 0; event < events.size(); event++) {
        StreamRecord<Long> record = new StreamRecord<>(CALLS.distinct() * 100 + event * 7919L, 5);
        task.processElement(record);
        assertEquals(expected.size(), task.getOutput().size());
        events.get(event).run();
        expected.add(record);
        expected.add(new Object());
        assertEquals(expected.size(), task.getOutput().size());
        assertEquals(record, new ArrayList<>(task.getOutput()).get(expected.size() - 2));
      }
    }
  }

  private interface ThrowingAction {
    void run() throws Exception;
  }

  @Test
  void aBatchWaitsForFiveMillisecondsAtMost() throws Exception {
    try (var task = task(ENDLESS)) {
      task.open();
      task.setProcessingTime(100);
      task.processElement(new StreamRecord<>(0L, 5));
      task.setProcessingTime(104);
      assertTrue(task.getOutput().isEmpty());
      task.setProcessingTime(105);
      assertEquals(1, task.getOutput().size());
      task.processElement(new StreamRecord<>(1L, 5));
      assertEquals(1, task.getOutput().size());
      task.endInput();
      assertEquals(2, task.getOutput().size());
    }
  }

  @Test
  void aFullBatchDoesNotWait() throws Exception {
    try (var task = task(ENDLESS)) {
      task.open();
      for (long record = 0; record < DeduplicateOperator.BATCH; record++) {
        assertTrue(task.getOutput().isEmpty());
        task.processElement(new StreamRecord<>(record, 5));
      }
      assertFalse(task.getOutput().isEmpty());
    }
  }

  /** Record 1000 sets the clock; record 0 is late by the window, record 1 was in time. */
  private static KeyedOneInputStreamOperatorTestHarness<Integer, Long, Long> afterALateRecord(
      Late late) throws Exception {
    KeyFunction<Long> oneKeyGroup = record -> new byte[] {1};
    var task = task(MINUTE, oneKeyGroup, late, 1, 0);
    task.open();
    task.processElement(new StreamRecord<>(1000L, 1_000_000));
    task.processElement(new StreamRecord<>(1001L, 940_000));
    task.processElement(new StreamRecord<>(1002L, 939_959));
    task.processElement(new StreamRecord<>(1003L, 1_000_001));
    try {
      task.endInput();
    } catch (Exception failure) {
      task.close();
      throw failure;
    }
    return task;
  }

  @Test
  void lateRecordsGoByPolicy() throws Exception {
    try (var task = afterALateRecord(Late.PASS)) {
      assertEquals(List.of(1000L, 1002L), task.extractOutputValues());
      assertEquals(List.of(1001L, 1003L), side(task, DUPLICATES));
    }
    try (var task = afterALateRecord(Late.JUDGE)) {
      assertEquals(List.of(1000L), task.extractOutputValues());
      assertEquals(List.of(1001L, 1002L, 1003L), side(task, DUPLICATES));
    }
    try (var task = afterALateRecord(Late.ASIDE)) {
      assertEquals(List.of(1000L), task.extractOutputValues());
      assertEquals(List.of(1002L), side(task, LATE));
    }
    Exception failure =
        assertThrows(IllegalStateException.class, () -> afterALateRecord(Late.FAIL));
    assertEquals(
        "a record of event time 939959 is late: the clock of its key group is at 1000000",
        failure.getMessage());
  }

  @Test
  void aRecordOfAnotherTaskIsRejected() throws Exception {
    try (var task = task(ENDLESS, CALLS::key, Late.PASS, KEY_GROUPS, 3)) {
      task.open();
      Exception failure =
          assertThrows(
              IllegalStateException.class,
              () -> {
                for (long record = 0; record < 100; record++) {
                  task.processElement(new StreamRecord<>(record, 5));
                }
                task.endInput();
              });
      assertTrue(failure.getMessage().contains("key function must return the same bytes"));
    }
  }

  @Test
  void aSnapshotIsTheStreamBeforeIt() throws Exception {
    for (Settings settings : List.of(ENDLESS, MINUTE, SKEWED)) {
      OperatorSubtaskState state;
      Set<Long> fresh = new HashSet<>();
      try (var task = task(settings)) {
        task.open();
        fresh.addAll(feed(task, 0, 5_000));
        OperatorSnapshotFutures futures = snapshot(task, 1, 1 << 24);
        // Records behind the snapshot are not in it, though it is written after them.
        feed(task, 5_000, 6_000);
        state = OperatorSnapshotFinalizer.create(futures).getJobManagerOwnedState();
      }
      try (var task = task(settings)) {
        task.initializeState(state);
        task.open();
        fresh.addAll(feed(task, 5_000, 10_000));
      }
      assertEquals(Oracle.engine(settings, CALLS, 10_000), fresh);
    }
  }

  @Test
  void aFailedOrCancelledCheckpointChangesNothing() throws Exception {
    try (var task = task(MINUTE)) {
      task.open();
      Set<Long> fresh = new HashSet<>(feed(task, 0, 5_000));
      RunnableFuture<?> failed = snapshot(task, 1, 100).getKeyedStateRawFuture();
      failed.run();
      Exception failure = assertThrows(ExecutionException.class, failed::get);
      assertTrue(failure.getMessage().contains("Size of the state is larger"));
      fresh.addAll(feed(task, 5_000, 6_000));
      OperatorSnapshotFutures cancelled = snapshot(task, 2, 100);
      cancelled.cancel();
      assertTrue(cancelled.getKeyedStateRawFuture().isCancelled());
      fresh.addAll(feed(task, 6_000, 10_000));
      assertEquals(Oracle.engine(MINUTE, CALLS, 10_000), fresh);
    }
  }

  /** A snapshot into streams that take so many bytes, not written yet. */
  private static OperatorSnapshotFutures snapshot(
      KeyedOneInputStreamOperatorTestHarness<Integer, Long, Long> task, long checkpoint, int bytes)
      throws Exception {
    return task.getOperator()
        .snapshotState(
            checkpoint,
            0,
            CheckpointOptions.forCheckpointWithDefaultLocation(),
            new MemCheckpointStreamFactory(bytes));
  }

  /** Feeds the records of a task's key groups. */
  private static Set<Long> feedTask(
      Settings settings,
      OperatorSubtaskState state,
      List<OperatorSubtaskState> after,
      int parallelism,
      int index,
      long from,
      long to)
      throws Exception {
    KeyGroups<Long> selector = new KeyGroups<>(CALLS::key, settings);
    Set<Long> fresh = new HashSet<>();
    try (var task = task(settings, CALLS::key, Late.PASS, parallelism, index)) {
      if (state != null) {
        task.initializeState(state);
      }
      task.open();
      for (long record = from; record < to; record++) {
        int owner =
            KeyGroupRangeAssignment.assignKeyToParallelOperator(
                selector.getKey(record), KEY_GROUPS, parallelism);
        if (owner == index) {
          task.processElement(new StreamRecord<>(record, CALLS.time(record)));
        }
      }
      task.prepareSnapshotPreBarrier(1);
      after.add(task.snapshot(1, 1));
      fresh.addAll(task.extractOutputValues());
    }
    return fresh;
  }

  @Test
  void keyGroupsMoveBetweenTasks() throws Exception {
    for (Settings settings : List.of(ENDLESS, MINUTE, SKEWED)) {
      Set<Long> fresh = new HashSet<>();
      OperatorSubtaskState whole = null;
      int before = 0;
      long from = 0;
      for (int parallelism : new int[] {2, 4, 1, 3}) {
        List<OperatorSubtaskState> after = new ArrayList<>();
        for (int index = 0; index < parallelism; index++) {
          OperatorSubtaskState own =
              whole == null
                  ? null
                  : AbstractStreamOperatorTestHarness.repartitionOperatorState(
                      whole, KEY_GROUPS, before, parallelism, index);
          fresh.addAll(
              feedTask(settings, own, after, parallelism, index, from, from + 2_500));
        }
        whole =
            AbstractStreamOperatorTestHarness.repackageState(
                after.toArray(new OperatorSubtaskState[0]));
        before = parallelism;
        from += 2_500;
      }
      assertEquals(Oracle.engine(settings, CALLS, 10_000), fresh);
    }
  }

  @Test
  void otherSettingsAreRejected() throws Exception {
    OperatorSubtaskState state;
    try (var task = task(MINUTE)) {
      task.open();
      feed(task, 0, 100);
      state = task.snapshot(1, 1);
    }
    Settings larger = Settings.of(1 << 21, 1e-8, 60_000, 0, 0, false, KEY_GROUPS, 0, null);
    try (var task = task(larger)) {
      Exception failure = assertThrows(Exception.class, () -> task.initializeState(state));
      assertTrue(failure.getMessage().contains("saved with another memory: it has 1048576 bytes"));
    }
  }

  @Test
  void aTaskFailsThatDoesNotFitIntoTheDeclaredMemory() throws Exception {
    // A filter of 1 MiB and its copy.
    openWith(2 << 20);
    openWith(2 << 20);
    Exception failure =
        assertThrows(IllegalStateException.class, () -> openWith((2 << 20) - 1));
    assertEquals(
        "invalid taskmanager.memory.task.off-heap.size: 2097151 bytes: expected at least 2 mb, for "
            + "filters of 0 bytes in this task manager, and one of 1 mb, each with its copy of a "
            + "checkpoint",
        failure.getMessage());
    openWith(2 << 20);
  }

  /** Counters are those of now. A timer reads a quarter of the lines here, the next one goes on. */
  @Test
  void theGaugesBecomeThoseOfAReport() throws Exception {
    long memory = 4L * DeduplicateOperator.REPORT_LINES * 64;
    Settings settings = Settings.of(memory, 1e-8, 60_000, 0, 0, false, KEY_GROUPS, 0, null);
    try (var task = task(settings);
        Partitions filter =
            Partitions.open(settings.spec(), settings.hashing(), KEY_GROUPS, 0, KEY_GROUPS - 1)) {
      task.open();
      FilterMetrics metrics = ((DeduplicateOperator<?>) task.getOperator()).filterMetrics;
      feed(task, 0, 600);
      for (long record = 0; record < 600; record++) {
        observe(filter, settings, record);
      }
      // When the task opened, its timer read the first quarter, which was empty.
      for (int timer = 1; timer <= 3 + 4; timer++) {
        task.processElement(new StreamRecord<>(0L, CALLS.time(0)));
        task.setProcessingTime(10 * timer);
        observe(filter, settings, 0);
        Report expected = filter.report();
        assertEquals(expected.observed(), metrics.report.observed());
        if (timer < 3 + 4) {
          assertNotEquals(expected.fill(), metrics.report.fill());
        } else {
          assertEquals(expected, metrics.report);
        }
      }
    }
  }

  private static void observe(Partitions filter, Settings settings, long record) {
    long[] hash = {Hasher.hash(CALLS.key(record), settings.hashing())};
    filter.observe(hash, new long[] {Oracle.tick(settings, CALLS.time(record))}, 1, new long[1]);
  }

  private static void openWith(long declared) throws Exception {
    Configuration config = new Configuration();
    config.set(TaskManagerOptions.TASK_OFF_HEAP_MEMORY, new MemorySize(declared));
    MockEnvironment environment =
        MockEnvironment.builder()
            .setMaxParallelism(KEY_GROUPS)
            .setTaskManagerRuntimeInfo(new TestingTaskManagerRuntimeInfo(config))
            .build();
    try (var task =
        new KeyedOneInputStreamOperatorTestHarness<>(
            new DeduplicateOperator<>(ENDLESS, CALLS::key, policies(Late.PASS)),
            new KeyGroups<>(CALLS::key, ENDLESS),
            Types.INT,
            environment)) {
      task.open();
    }
  }
}
