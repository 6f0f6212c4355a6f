package echoless.flink;

import echoless.EcholessException;
import echoless.Hashing;
import echoless.Partitions;
import echoless.Snapshot;
import echoless.flink.Policy.Fate;
import java.io.IOException;
import java.io.Serializable;
import java.util.Arrays;
import java.util.concurrent.RunnableFuture;
import org.apache.flink.api.common.TaskInfo;
import org.apache.flink.api.common.eventtime.TimestampAssigner;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.runtime.checkpoint.CheckpointOptions;
import org.apache.flink.runtime.event.WatermarkEvent;
import org.apache.flink.runtime.execution.Environment;
import org.apache.flink.runtime.state.AsyncSnapshotCallable;
import org.apache.flink.runtime.state.CheckpointStateOutputStream;
import org.apache.flink.runtime.state.CheckpointStreamFactory;
import org.apache.flink.runtime.state.CheckpointedStateScope;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.KeyGroupRangeOffsets;
import org.apache.flink.runtime.state.KeyGroupStatePartitionStreamProvider;
import org.apache.flink.runtime.state.KeyGroupsStateHandle;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.SnapshotResult;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.memory.MemoryBackendCheckpointStorageAccess;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.BoundedOneInput;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.operators.OperatorSnapshotFutures;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.LatencyMarker;
import org.apache.flink.streaming.runtime.streamrecord.RecordAttributes;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus;
import org.apache.flink.util.OutputTag;

/**
 * Judges records in batches, and forwards them unchanged and in their order.
 *
 * <p>A batch ends when it is full, when its oldest record has waited for {@link #MAX_WAIT_MILLIS},
 * and before anything that is no record passes: a watermark, a latency marker, a checkpoint barrier,
 * the end of the input. So nothing overtakes a record, and a snapshot has no records to hold.
 *
 * <p>State is raw keyed state. A thread of Flink writes it, while the task goes on: lines that
 * change before they are written are copied.
 */
final class DeduplicateOperator<T> extends AbstractStreamOperator<T>
    implements OneInputStreamOperator<T, T>, BoundedOneInput {

  /** Beyond this, the cost of a call into the engine no longer shows. */
  static final int BATCH = 1024;

  private static final long MAX_WAIT_MILLIS = 5;
  private static final int MAX_KEY_BYTES = 1 << 20;
  private static final byte[] NO_KEY = {};
  private static final long NOT_JUDGED = -1;

  /**
   * The lines that a report reads at a time, 512 KiB. The timer of a batch takes a report, so a
   * busy task that owns 1 GiB reads all of it in ten seconds.
   */
  static final int REPORT_LINES = 1 << 13;

  private final Settings settings;
  private final KeyFunction<T> keys;
  private final Policies<T> policies;

  private transient Hashing hashing;
  private transient long hashKeyId;
  private transient Partitions partitions;
  private transient KeyGroupRange groups;
  private transient long reserved;
  transient FilterMetrics filterMetrics;

  private transient StreamRecord<T>[] records;
  private transient int size;

  /** The keys of the records behind each other, and where each ends. */
  private transient byte[] keyBytes;

  private transient int[] offsets;

  /** The event times; {@link #NOT_JUDGED} for a record that cannot be judged. */
  private transient long[] times;

  /** What happens to the records, in bits of {@link Partitions}. */
  private transient byte[] fates;

  private transient boolean timerIsSet;

  /**
   * What happens to records.
   *
   * @param maxAdvanceMillis 0 for no bound
   * @param duplicatesTag gets the duplicates; null drops them
   */
  record Policies<T>(
      Policy<T> late,
      Policy<T> beyondSkew,
      Policy<T> unjudged,
      long maxAdvanceMillis,
      OutputTag<T> duplicatesTag)
      implements Serializable {

    /** The bits of records that are late or ahead and have this fate. */
    int bits(Fate fate) {
      return (late.fate() == fate ? Partitions.LATE : 0)
          | (beyondSkew.fate() == fate ? Partitions.BEYOND_SKEW : 0)
          | (unjudged.fate() == fate ? Partitions.TOO_FAR_AHEAD : 0);
    }
  }

  DeduplicateOperator(Settings settings, KeyFunction<T> keys, Policies<T> policies) {
    this.settings = settings;
    this.keys = keys;
    this.policies = policies;
  }

  // State

  @Override
  protected boolean isUsingCustomRawKeyedState() {
    return true;
  }

  /** Without timers of its own, Flink has nothing to write into the raw keyed state. */
  @Override
  protected void beforeInitializeStateHandler() {
    timeServiceManager = null;
  }

  @Override
  public void initializeState(StateInitializationContext context) throws Exception {
    super.initializeState(context);
    groups = ownedGroups(getRuntimeContext().getTaskInfo());
    int owned = groups.getNumberOfKeyGroups();
    hashing = settings.hashing();
    hashKeyId = settings.hashKeyId(hashing);
    requireStorage(owned);
    reserve(owned);
    partitions = openPartitions();
    if (settings.hasWindow()) {
      partitions.setTimeRules(
          settings.window(),
          policies.maxAdvanceMillis,
          policies.bits(Fate.JUDGE),
          policies.bits(Fate.FAIL));
    }
    restore(context.getRawKeyedStateInputs());
  }

  private Partitions openPartitions() {
    try {
      return Partitions.open(
          settings.spec(),
          hashing,
          settings.keyGroups(),
          groups.getStartKeyGroup(),
          groups.getEndKeyGroup());
    } catch (EcholessException failure) {
      // The engine names its own option.
      String text = failure.getMessage().replace("invalid fpr=", "invalid falsePositiveRate ");
      throw new IllegalStateException("deduplication: " + text, failure);
    }
  }

  /**
   * Flink's default storage of checkpoints is the heap of the job manager, and has a limit for each
   * task. Beyond it, each checkpoint would fail, and with it the job.
   */
  private void requireStorage(int owned) {
    Environment task = getContainingTask().getEnvironment();
    if (CheckpointingOptions.isCheckpointingEnabled(task.getJobConfiguration())
        && task.getCheckpointStorageAccess() instanceof MemoryBackendCheckpointStorageAccess heap) {
      long bytes = settings.memory() / settings.keyGroups() * owned + owned * GroupState.MOST_HEAD;
      if (bytes > heap.getMaxStateSize()) {
        throw new IllegalStateException(
            String.format(
                "invalid %s: jobmanager: the state of this task takes up to %d bytes, and this "
                    + "storage at most %d: expected filesystem, with %s",
                CheckpointingOptions.CHECKPOINT_STORAGE.key(),
                bytes,
                heap.getMaxStateSize(),
                CheckpointingOptions.CHECKPOINTS_DIRECTORY.key()));
      }
    }
  }

  private KeyGroupRange ownedGroups(TaskInfo task) {
    int keyGroups = task.getMaxNumberOfParallelSubtasks();
    if (keyGroups != settings.keyGroups()) {
      throw new IllegalStateException(
          String.format(
              "invalid maximum parallelism %d of the deduplication: expected the %d of its builder",
              keyGroups, settings.keyGroups()));
    }
    return KeyGroupRangeAssignment.computeKeyGroupRangeForOperatorIndex(
        keyGroups, task.getNumberOfParallelSubtasks(), task.getIndexOfThisSubtask());
  }

  /** Every owned key group is restored, or none, if the job had no deduplication before. */
  private void restore(Iterable<KeyGroupStatePartitionStreamProvider> states) throws Exception {
    boolean[] restored = new boolean[groups.getNumberOfKeyGroups()];
    int count = 0;
    for (KeyGroupStatePartitionStreamProvider state : states) {
      int group = state.getKeyGroupId();
      int index = group - groups.getStartKeyGroup();
      GroupState.Clock clock =
          GroupState.read(
              state.getStream(), settings, hashKeyId, part -> partitions.load(group, part));
      partitions.restoreClock(group, clock.latest(), clock.watermark());
      count += restored[index] ? 0 : 1;
      restored[index] = true;
    }
    if (count != 0 && count != restored.length) {
      throw new IllegalStateException(
          String.format(
              "the state has %d of the %d key groups of this task", count, restored.length));
    }
  }

  @Override
  public OperatorSnapshotFutures snapshotState(
      long checkpoint, long timestamp, CheckpointOptions options, CheckpointStreamFactory streams)
      throws Exception {
    OperatorSnapshotFutures futures =
        super.snapshotState(checkpoint, timestamp, options, streams);
    try {
      futures.setKeyedStateRawFuture(snapshot(streams));
    } catch (Exception failure) {
      futures.cancel();
      throw failure;
    }
    return futures;
  }

  private RunnableFuture<SnapshotResult<KeyedStateHandle>> snapshot(CheckpointStreamFactory streams)
      throws Exception {
    long begin = System.nanoTime();
    Snapshot copy = partitions.snapshot();
    filterMetrics.snapshotNanos = System.nanoTime() - begin;
    int owned = groups.getNumberOfKeyGroups();
    long[] clocks = new long[owned + 1];
    partitions.clocks(clocks);
    AsyncSnapshotCallable<SnapshotResult<KeyedStateHandle>> writing = new AsyncSnapshotCallable<>() {
      @Override
      protected SnapshotResult<KeyedStateHandle> callInternal() throws Exception {
        CheckpointStateOutputStream out =
            streams.createCheckpointStateOutputStream(CheckpointedStateScope.EXCLUSIVE);
        snapshotCloseableRegistry.registerCloseable(out);
        KeyGroupRangeOffsets offsets = new KeyGroupRangeOffsets(groups);
        for (int group : groups) {
          offsets.setKeyGroupOffset(group, out.getPos());
          long latest = clocks[group - groups.getStartKeyGroup()];
          GroupState.Clock clock = new GroupState.Clock(latest, clocks[owned]);
          GroupState.write(out, settings, hashKeyId, clock, part -> copy.save(group, part));
        }
        if (!snapshotCloseableRegistry.unregisterCloseable(out)) {
          throw new IOException("the checkpoint was cancelled");
        }
        return SnapshotResult.of(new KeyGroupsStateHandle(offsets, out.closeAndGetHandle()));
      }

      @Override
      protected void cleanupProvidedResources() {
        copy.close();
      }
    };
    try {
      return writing.toAsyncSnapshotFutureTask(getContainingTask().getCancelables());
    } catch (IOException cancelled) {
      copy.close();
      throw cancelled;
    }
  }

  // Life

  private void reserve(int owned) {
    ReadableConfig config =
        getContainingTask().getEnvironment().getTaskManagerInfo().getConfiguration();
    // A checkpoint copies what changes while it is written, at worst everything.
    long bytes = settings.memory() / settings.keyGroups() * owned * 2;
    NativeMemory.reserve(bytes, config);
    reserved = bytes;
  }

  @Override
  @SuppressWarnings("unchecked")
  public void open() throws Exception {
    super.open();
    records = new StreamRecord[BATCH];
    keyBytes = new byte[BATCH * 16];
    offsets = new int[BATCH + 1];
    times = new long[BATCH];
    fates = new byte[BATCH];
    filterMetrics = new FilterMetrics(getMetricGroup(), partitions.reportInSlices(REPORT_LINES));
  }

  @Override
  public void endInput() throws Exception {
    flush();
  }

  @Override
  public void close() throws Exception {
    try {
      super.close();
    } finally {
      if (partitions != null) {
        partitions.close();
        partitions = null;
      }
      NativeMemory.release(reserved);
      reserved = 0;
    }
  }

  // Records

  /** The operator finds the key group of a record itself, and uses no state by key. */
  @Override
  public boolean hasKeyContext1() {
    return false;
  }

  @Override
  @SuppressWarnings("rawtypes")
  public void setKeyContextElement1(StreamRecord record) {}

  @Override
  public void processElement(StreamRecord<T> record) throws Exception {
    byte[] key = KeyGroups.keyOf(keys, record.getValue());
    String fault = faultOf(key, record);
    if (fault != null) {
      filterMetrics.unjudged.inc();
      if (policies.unjudged.fate() == Fate.FAIL) {
        throw new IllegalStateException(fault);
      }
      key = NO_KEY;
    }
    times[size] = fault != null ? NOT_JUDGED : settings.hasWindow() ? record.getTimestamp() : 0;
    int end = Math.addExact(offsets[size], key.length);
    if (end > keyBytes.length) {
      keyBytes = Arrays.copyOf(keyBytes, Math.max(end, 2 * keyBytes.length));
    }
    System.arraycopy(key, 0, keyBytes, offsets[size], key.length);
    records[size++] = record;
    offsets[size] = end;
    if (size == BATCH || end >= MAX_KEY_BYTES) {
      flush();
    } else if (!timerIsSet) {
      timerIsSet = true;
      long now = processingTimeService.getCurrentProcessingTime();
      processingTimeService.registerTimer(now + MAX_WAIT_MILLIS, this::onTimer);
    }
  }

  /** Why a record cannot be judged; null if it can. */
  private String faultOf(byte[] key, StreamRecord<T> record) {
    if (key == null) {
      return "a record has no key: the key function of the deduplication returned null";
    }
    // A source without a strategy for times gives records one that stands for none.
    long time = record.hasTimestamp() ? record.getTimestamp() : TimestampAssigner.NO_TIMESTAMP;
    if (!settings.hasWindow() || Settings.isTime(time)) {
      return null;
    }
    return time == TimestampAssigner.NO_TIMESTAMP
        ? "a record has no event time: assign timestamps and watermarks before the deduplication"
        : "invalid event time " + time + ": expected milliseconds since 1970";
  }

  private void onTimer(long now) throws Exception {
    timerIsSet = false;
    flush();
    filterMetrics.show(partitions.reportInSlices(REPORT_LINES), now);
  }

  private void flush() throws Exception {
    if (size == 0) {
      return;
    }
    long begin = System.nanoTime();
    long duplicates = judge();
    long nanos = System.nanoTime() - begin;
    int judged = 0;
    for (int index = 0; index < size; index++) {
      StreamRecord<T> record = records[index];
      records[index] = null;
      int fate = fates[index];
      countTime(fate);
      if ((fate & Partitions.UNJUDGED) != 0) {
        Policy<T> policy =
            (fate & Partitions.LATE) != 0
                ? policies.late
                : (fate & Partitions.BEYOND_SKEW) != 0 ? policies.beyondSkew : policies.unjudged;
        forward(record, policy.fate() == Fate.ASIDE, policy.tag());
      } else {
        forward(record, (fate & Partitions.DUPLICATE) != 0, policies.duplicatesTag);
        judged++;
      }
    }
    filterMetrics.count(judged, duplicates, nanos);
    size = 0;
  }

  /** Hashes, routes and judges the batch. */
  private long judge() {
    long now = processingTimeService.getCurrentProcessingTime();
    try {
      return partitions.judge(keyBytes, offsets, size, times, now, fates);
    } catch (EcholessException failure) {
      String text = failure.getMessage();
      if (text.startsWith("invalid partition=")) {
        text =
            "a record of another key group reached this task ("
                + text
                + "): the key function must return the same bytes whenever it gets the same record";
      }
      throw new IllegalStateException(text, failure);
    }
  }

  /** Counts a record that is late or ahead. */
  private void countTime(int fate) {
    if ((fate & Partitions.LATE) != 0) {
      filterMetrics.late.inc();
    }
    if ((fate & Partitions.BEYOND_SKEW) != 0) {
      filterMetrics.beyondSkew.inc();
    }
    if ((fate & Partitions.TOO_FAR_AHEAD) != 0) {
      filterMetrics.ahead.inc();
    }
  }

  /** Forwards a record, or sets it aside if there is a tag. */
  private void forward(StreamRecord<T> record, boolean isSetAside, OutputTag<T> tag) {
    if (!isSetAside) {
      output.collect(record);
    } else if (tag != null) {
      output.collect(tag, record);
    }
  }

  // What must not overtake a record

  @Override
  public void prepareSnapshotPreBarrier(long checkpoint) throws Exception {
    flush();
  }

  @Override
  public void processWatermark(Watermark watermark) throws Exception {
    flush();
    // No time is one before the first and after the last.
    if (Settings.isTime(watermark.getTimestamp())) {
      long now = processingTimeService.getCurrentProcessingTime();
      partitions.setWatermark(watermark.getTimestamp(), now);
    }
    super.processWatermark(watermark);
  }

  @Override
  public void processWatermark(WatermarkEvent watermark) throws Exception {
    flush();
    super.processWatermark(watermark);
  }

  @Override
  public void processWatermarkStatus(WatermarkStatus status) throws Exception {
    flush();
    super.processWatermarkStatus(status);
  }

  @Override
  public void processLatencyMarker(LatencyMarker marker) throws Exception {
    flush();
    super.processLatencyMarker(marker);
  }

  @Override
  public void processRecordAttributes(RecordAttributes attributes) throws Exception {
    flush();
    super.processRecordAttributes(attributes);
  }
}
