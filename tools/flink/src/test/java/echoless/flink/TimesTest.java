package echoless.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.flink.api.common.eventtime.TimestampAssigner;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;
import org.apache.flink.util.OutputTag;
import org.junit.jupiter.api.Test;

/** Records whose times or keys are not those of a stream in order, in one task. */
class TimesTest {
  private static final int KEY_GROUPS = 16;
  private static final long START = 1_700_000_000_000L;
  private static final long MINUTE = 60_000;
  private static final long HOUR = 60 * MINUTE;
  private static final OutputTag<Call> DUPLICATES = tag("duplicates");
  private static final OutputTag<Call> SIDE = tag("side");

  /** A record; null stands for no key, and for no time at all. */
  private record Call(Long key, Long time) {
    byte[] bytes() {
      return key == null ? null : ByteBuffer.allocate(8).putLong(key).array();
    }

    StreamRecord<Call> record() {
      return time == null ? new StreamRecord<>(this) : new StreamRecord<>(this, time);
    }
  }

  private static OutputTag<Call> tag(String name) {
    return new OutputTag<>(name, Types.GENERIC(Call.class));
  }

  private static Settings window(long lateness, long skew, boolean refresh) {
    return Settings.of(1 << 22, 1e-8, MINUTE, lateness, skew, refresh, KEY_GROUPS, 0, null);
  }

  /** A task whose records of all kinds beside duplicates have these policies. */
  private static final class Task implements AutoCloseable {
    private final KeyedOneInputStreamOperatorTestHarness<Integer, Call, Call> harness;

    Task(
        Settings settings,
        Late late,
        Ahead beyondSkew,
        Unjudged unjudged,
        long maxAdvance,
        OperatorSubtaskState state)
        throws Exception {
      DeduplicateOperator.Policies<Call> policies =
          new DeduplicateOperator.Policies<>(
              Policy.of(late, SIDE),
              Policy.of(beyondSkew, SIDE),
              Policy.of(unjudged, SIDE),
              maxAdvance,
              DUPLICATES);
      harness =
          new KeyedOneInputStreamOperatorTestHarness<>(
              new DeduplicateOperator<>(settings, Call::bytes, policies),
              new KeyGroups<>(Call::bytes, settings),
              Types.INT,
              KEY_GROUPS,
              1,
              0);
      harness.setup(Types.GENERIC(Call.class).createSerializer(harness.getExecutionConfig().getSerializerConfig()));
      if (state != null) {
        harness.initializeState(state);
      }
      harness.open();
      harness.setProcessingTime(START);
    }

    void watermark(long time) throws Exception {
      harness.processWatermark(new Watermark(time));
    }

    /** What happens to a record: fresh (or passed), duplicate or side. */
    String judge(Long key, Long time) throws Exception {
      int fresh = harness.extractOutputValues().size();
      int side = count(SIDE);
      harness.processElement(new Call(key, time).record());
      harness.prepareSnapshotPreBarrier(0);
      if (harness.extractOutputValues().size() > fresh) {
        return "fresh";
      }
      return count(SIDE) > side ? "side" : "duplicate";
    }

    private int count(OutputTag<Call> tag) {
      var records = harness.getSideOutput(tag);
      return records == null ? 0 : records.size();
    }

    FilterMetrics metrics() {
      return ((DeduplicateOperator<?>) harness.getOperator()).filterMetrics;
    }

    OperatorSubtaskState snapshot() throws Exception {
      return harness.snapshot(1, 1);
    }

    @Override
    public void close() throws Exception {
      harness.close();
    }
  }

  private static Task task(Settings settings, Unjudged unjudged, long maxAdvance)
      throws Exception {
    return new Task(settings, Late.PASS, Ahead.JUDGE, unjudged, maxAdvance, null);
  }

  @Test
  void recordsWithoutAKeyOrATimeGoByPolicy() throws Exception {
    Long[][] records = {
      {null, START}, {1L, null}, {1L, TimestampAssigner.NO_TIMESTAMP}, {1L, -1L},
      {1L, Long.MAX_VALUE}
    };
    String[] failures = {
      "a record has no key: the key function of the deduplication returned null",
      "a record has no event time: assign timestamps and watermarks before the deduplication",
      "a record has no event time: assign timestamps and watermarks before the deduplication",
      "invalid event time -1: expected milliseconds since 1970",
      "invalid event time 9223372036854775807: expected milliseconds since 1970",
    };
    for (long skew : new long[] {0, HOUR}) {
      Settings settings = window(0, skew, false);
      for (int index = 0; index < records.length; index++) {
        Long[] record = records[index];
        try (Task task = task(settings, Unjudged.FAIL, 0)) {
          Exception failure =
              assertThrows(
                  IllegalStateException.class, () -> task.judge(record[0], record[1]));
          assertEquals(failures[index], failure.getMessage());
        }
        try (Task passes = task(settings, Unjudged.PASS, 0);
            Task sets = task(settings, Unjudged.ASIDE, 0)) {
          for (int repeat = 1; repeat <= 2; repeat++) {
            assertEquals("fresh", passes.judge(record[0], record[1]));
            assertEquals("side", sets.judge(record[0], record[1]));
            assertEquals(repeat, passes.metrics().unjudged.getCount());
          }
          // Records beside them are judged.
          assertEquals("fresh", sets.judge(1L, START));
          assertEquals("duplicate", sets.judge(1L, START));
        }
      }
    }
    // Without a window, times do not matter.
    Settings endless = Settings.of(1 << 20, 1e-8, 0, 0, 0, false, KEY_GROUPS, 0, null);
    try (Task task = task(endless, Unjudged.ASIDE, 0)) {
      assertEquals("fresh", task.judge(1L, null));
      assertEquals("duplicate", task.judge(1L, -1L));
      assertEquals("side", task.judge(null, START));
    }
  }

  @Test
  void aTimeThatIsTooFarAheadMovesNoClock() throws Exception {
    for (long skew : new long[] {0, HOUR}) {
      Settings settings = window(0, skew, false);
      try (Task task = task(settings, Unjudged.ASIDE, HOUR)) {
        // The first one is compared with the system's clock.
        assertEquals("side", task.judge(1L, START + HOUR + 1));
        assertEquals("fresh", task.judge(1L, START + HOUR));
        assertEquals("side", task.judge(1L, START + 2 * HOUR + 1));
        assertEquals("duplicate", task.judge(1L, START + HOUR + MINUTE));
        assertEquals("fresh", task.judge(1L, START + 2 * HOUR));
        assertEquals(2, task.metrics().ahead.getCount());
        assertEquals(0, task.metrics().late.getCount());
        assertEquals(0, task.metrics().unjudged.getCount());
        // Neither does the watermark of such a time, which its source sends behind it.
        task.watermark(START + 1000 * HOUR);
        assertEquals("duplicate", task.judge(1L, START + 2 * HOUR + MINUTE));
        assertEquals(0, task.metrics().late.getCount());
      }
      try (Task task = task(settings, Unjudged.FAIL, HOUR)) {
        task.judge(1L, START);
        Exception failure =
            assertThrows(
                IllegalStateException.class, () -> task.judge(1L, START + HOUR + 1));
        assertEquals(
            "a record of event time 1700003600001 is too far ahead: more than maxAdvance, 3600000 "
                + "ms, beyond the clock at 1700000000000",
            failure.getMessage());
      }
    }
  }

  /** A stream that was silent for longer goes on, as if it had begun with a thousand records. */
  @Test
  void afterAThousandInARowTheClockGoesOn() throws Exception {
    int most = 1000;
    try (Task task = task(window(0, 0, false), Unjudged.ASIDE, HOUR)) {
      assertEquals("fresh", task.judge(1L, START));
      for (int record = 1; record < most; record++) {
        assertEquals("side", task.judge(1L, START + 10 * HOUR + record));
      }
      // One that is in time begins the row anew.
      assertEquals("fresh", task.judge(1L, START + HOUR));
      for (int record = 1; record < most; record++) {
        assertEquals("side", task.judge(1L, START + 10 * HOUR + record));
      }
      // It is judged where the clock goes on.
      assertEquals("fresh", task.judge(1L, START + 10 * HOUR));
      assertEquals("duplicate", task.judge(1L, START + 10 * HOUR + most));
      assertEquals(2 * (most - 1), task.metrics().ahead.getCount());
    }
  }

  @Test
  void recordsBeyondTheSkewGoByPolicy() throws Exception {
    Settings settings = window(0, HOUR, false);
    long edge = START + HOUR;
    long beyond = START + HOUR + MINUTE;
    try (Task task = new Task(settings, Late.ASIDE, Ahead.JUDGE, Unjudged.FAIL, 0, null)) {
      task.watermark(START);
      assertEquals("fresh", task.judge(1L, edge));
      assertEquals(0, task.metrics().beyondSkew.getCount());
      assertEquals("fresh", task.judge(2L, beyond + MINUTE));
      assertEquals("duplicate", task.judge(2L, beyond + MINUTE));
      assertEquals(2, task.metrics().beyondSkew.getCount());
      // The clock of that key group followed, a skew behind.
      assertEquals("duplicate", task.judge(2L, beyond));
      assertEquals("fresh", task.judge(2L, START + MINUTE));
      assertEquals("side", task.judge(2L, START));
    }
    for (Ahead policy : List.of(Ahead.PASS, Ahead.ASIDE)) {
      String fate = policy == Ahead.PASS ? "fresh" : "side";
      OperatorSubtaskState state;
      try (Task task = new Task(settings, Late.FAIL, policy, Unjudged.FAIL, 0, null)) {
        task.watermark(START);
        assertEquals("fresh", task.judge(1L, edge));
        assertEquals(fate, task.judge(1L, beyond));
        assertEquals(fate, task.judge(1L, beyond));
        assertEquals("fresh", task.judge(1L, START));
        state = task.snapshot();
      }
      // The state has the watermark.
      try (Task task = new Task(settings, Late.FAIL, policy, Unjudged.FAIL, 0, state)) {
        assertEquals(fate, task.judge(1L, beyond));
        assertEquals("duplicate", task.judge(1L, edge));
        assertEquals("duplicate", task.judge(1L, START));
        task.watermark(START + MINUTE);
        assertEquals("duplicate", task.judge(1L, beyond));
      }
    }
    try (Task task = new Task(settings, Late.FAIL, Ahead.FAIL, Unjudged.FAIL, 0, null)) {
      task.watermark(START);
      Exception failure =
          assertThrows(IllegalStateException.class, () -> task.judge(1L, beyond));
      assertEquals(
          "a record of event time 1700003660000 is more than the skew, 3600000 ms, beyond the "
              + "watermark at 1700000000000",
          failure.getMessage());
    }
  }

  /** What is fresh, and what the watermark is before it: -1 for none. */
  private record Arrival(Call call, long watermark) {}

  /**
   * Two sources with keys of their own and some in common. The one is ahead of the other by an
   * offset, which falls to nothing as the other catches up. Of their records, 40 of 100 have a key
   * of at most a window before, or a little more.
   */
  private static List<Arrival> outOfStep(long offset, long disorder) {
    java.util.Random random = new java.util.Random(15);
    int records = 30_000;
    List<List<Call>> sources = List.of(new ArrayList<>(), new ArrayList<>());
    List<Arrival> arrivals = new ArrayList<>();
    long[] latest = {START, START};
    for (int record = 0; record < records; record++) {
      int source = record % 2;
      long ahead = source == 0 ? offset - offset * record / records : 0;
      long behind = disorder == 0 ? 0 : random.nextLong(disorder);
      long time = START + disorder + record * 500L + ahead - behind;
      List<Call> own = sources.get(source);
      // 60 records of a source are half a minute, or more while it catches up.
      int back = 1 + random.nextInt(150);
      long key = record;
      if (own.size() > back && random.nextInt(100) < 40) {
        key = own.get(own.size() - back).key;
      }
      Call call = new Call(key, time);
      own.add(call);
      latest[source] = Math.max(latest[source], time - disorder);
      long watermark = record % 100 == 99 ? Math.min(latest[0], latest[1]) - 1 : -1;
      arrivals.add(new Arrival(call, watermark));
    }
    return arrivals;
  }

  /** The share of duplicates that pass, and of fresh records that are dropped. */
  private static double[] errors(Settings settings, List<Arrival> arrivals) throws Exception {
    List<Call> calls = arrivals.stream().map(Arrival::call).toList();
    Set<Call> expected = Oracle.exact(settings, calls, Call::key, Call::time);
    Set<Call> fresh = new HashSet<>();
    try (Task task = new Task(settings, Late.PASS, Ahead.JUDGE, Unjudged.FAIL, 0, null)) {
      for (Arrival arrival : arrivals) {
        task.harness.processElement(arrival.call.record());
        if (arrival.watermark >= 0) {
          task.watermark(arrival.watermark);
        }
      }
      task.harness.endInput();
      fresh.addAll(task.harness.extractOutputValues());
    }
    long missed = fresh.stream().filter(call -> !expected.contains(call)).count();
    long dropped = expected.stream().filter(call -> !fresh.contains(call)).count();
    double duplicates = calls.size() - expected.size();
    return new double[] {missed / duplicates, dropped / (double) expected.size()};
  }

  /** Against an exact operator over the same stream: see {@link Oracle#exact}. */
  @Test
  void sourcesOutOfStepMissNothingWithinTheSkew() throws Exception {
    for (long disorder : new long[] {0, 30_000}) {
      for (long offset : new long[] {0, 10 * MINUTE, 10 * HOUR}) {
        List<Arrival> arrivals = outOfStep(offset, disorder);
        double[] without = errors(window(disorder, 0, false), arrivals);
        double[] with = errors(window(disorder, offset + HOUR, false), arrivals);
        System.out.printf(
            "sources %s apart, disorder %s: duplicates passed %.1f %% without a skew, %.1f %% with; "
                + "fresh records dropped %.2f %% and %.2f %%%n",
            Duration.ofMillis(offset),
            Duration.ofMillis(disorder),
            100 * without[0],
            100 * with[0],
            100 * without[1],
            100 * with[1]);
        assertEquals(0, with[0]);
        assertEquals(0, with[1]);
        assertTrue(offset == 0 || without[0] > 0.3, "passed " + without[0]);
      }
    }
  }

  /** With a refresh, a key is remembered from the latest of its times on. */
  @Test
  void aDuplicateOfAnEarlierTimeDoesNotShortenAWindow() throws Exception {
    try (Task task = task(window(0, HOUR, true), Unjudged.FAIL, 0)) {
      assertEquals("fresh", task.judge(1L, START + HOUR));
      assertEquals("duplicate", task.judge(1L, START + HOUR - MINUTE));
      assertEquals("duplicate", task.judge(1L, START + HOUR + MINUTE));
      assertEquals("duplicate", task.judge(1L, START + HOUR + 2 * MINUTE));
      assertEquals("fresh", task.judge(1L, START + HOUR + 4 * MINUTE));
    }
  }
}
