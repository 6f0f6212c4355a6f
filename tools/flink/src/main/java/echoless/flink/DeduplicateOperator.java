package echoless.flink;

import echoless.Hasher;
import echoless.Hashing;
import echoless.Partitions;
import echoless.Snapshot;
import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.RunnableFuture;
import org.apache.flink.api.common.TaskInfo;
import org.apache.flink.api.common.eventtime.TimestampAssigner;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.runtime.checkpoint.CheckpointOptions;
import org.apache.flink.runtime.event.WatermarkEvent;
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

  /**
   * The lines that a report reads at a time, 512 KiB. The timer of a batch takes a report, so a
   * busy task that owns 1 GiB reads all of it in ten seconds.
   */
  static final int REPORT_LINES = 1 << 13;

  private final Settings settings;
  private final KeyFunction<T> keys;
  private final Late lateness;
  private final OutputTag<T> duplicatesTag;
  private final OutputTag<T> lateTag;

  private transient Hashing hashing;
  private transient Partitions partitions;
  private transient KeyGroupRange groups;
  private transient long reserved;
  transient FilterMetrics filterMetrics;

  /** The largest tick of each key group that this task owns. */
  private transient long[] clocks;

  private transient StreamRecord<T>[] records;
  private transient int size;

  /** The keys of the records behind each other, and where each ends. */
  private transient byte[] keyBytes;

  private transient int[] offsets;
  private transient long[] hashes;
  private transient long[] ticks;

  /** Whether the record at the same index is judged. */
  private transient boolean[] isJudged;

  private transient long[] verdicts;
  private transient boolean timerIsSet;

  /**
   * @param duplicatesTag gets the duplicates; null drops them
   * @param lateTag gets late records under {@link Late#ASIDE}
   */
  DeduplicateOperator(
      Settings settings,
      KeyFunction<T> keys,
      Late lateness,
      OutputTag<T> duplicatesTag,
      OutputTag<T> lateTag) {
    this.settings = settings;
    this.keys = keys;
    this.lateness = lateness;
    this.duplicatesTag = duplicatesTag;
    this.lateTag = lateTag;
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
    reserve(owned);
    partitions =
        Partitions.open(
            settings.spec(),
            hashing,
            settings.keyGroups(),
            groups.getStartKeyGroup(),
            groups.getEndKeyGroup());
    clocks = new long[owned];
    restore(context.getRawKeyedStateInputs());
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
    boolean[] restored = new boolean[clocks.length];
    int count = 0;
    for (KeyGroupStatePartitionStreamProvider state : states) {
      int group = state.getKeyGroupId();
      int index = group - groups.getStartKeyGroup();
      clocks[index] =
          GroupState.read(state.getStream(), settings, part -> partitions.load(group, part));
      count += restored[index] ? 0 : 1;
      restored[index] = true;
    }
    if (count != 0 && count != clocks.length) {
      throw new IllegalStateException(
          String.format("the state has %d of the %d key groups of this task", count, clocks.length));
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
    long[] clocksThen = clocks.clone();
    AsyncSnapshotCallable<SnapshotResult<KeyedStateHandle>> writing = new AsyncSnapshotCallable<>() {
      @Override
      protected SnapshotResult<KeyedStateHandle> callInternal() throws Exception {
        CheckpointStateOutputStream out =
            streams.createCheckpointStateOutputStream(CheckpointedStateScope.EXCLUSIVE);
        snapshotCloseableRegistry.registerCloseable(out);
        KeyGroupRangeOffsets offsets = new KeyGroupRangeOffsets(groups);
        for (int group : groups) {
          offsets.setKeyGroupOffset(group, out.getPos());
          long clock = clocksThen[group - groups.getStartKeyGroup()];
          GroupState.write(out, settings, clock, part -> copy.save(group, part));
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
  @SuppressWarnings({"unchecked", "rawtypes"})
  public void open() throws Exception {
    super.open();
    records = new StreamRecord[BATCH];
    keyBytes = new byte[BATCH * 16];
    offsets = new int[BATCH + 1];
    hashes = new long[BATCH];
    ticks = settings.hasWindow() ? new long[BATCH] : null;
    isJudged = new boolean[BATCH];
    verdicts = new long[BATCH / Long.SIZE];
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
    Hasher.hash(keyBytes, offsets, size, hashing, hashes);
    int judged = selectJudged();
    long duplicates = partitions.observe(hashes, ticks, judged, verdicts);
    filterMetrics.count(judged, duplicates, System.nanoTime() - begin);
    int verdict = 0;
    for (int index = 0; index < size; index++) {
      StreamRecord<T> record = records[index];
      records[index] = null;
      if (!isJudged[index]) {
        forward(record, lateness == Late.ASIDE, lateTag);
      } else {
        forward(record, (verdicts[verdict / Long.SIZE] >>> verdict & 1) != 0, duplicatesTag);
        verdict++;
      }
    }
    size = 0;
  }

  /** Forwards a record, or sets it aside if there is a tag. */
  private void forward(StreamRecord<T> record, boolean isSetAside, OutputTag<T> tag) {
    if (!isSetAside) {
      output.collect(record);
    } else if (tag != null) {
      output.collect(tag, record);
    }
  }

  /** Moves the hashes of the records that are judged to the front, and returns their number. */
  private int selectJudged() {
    int judged = 0;
    for (int index = 0; index < size; index++) {
      long hash = hashes[index];
      int group = Partitions.partitionOf(hash, settings.keyGroups());
      if (!groups.contains(group)) {
        throw new IllegalStateException(
            String.format(
                "a record of key group %d reached the task of %d to %d: the key function must "
                    + "return the same bytes whenever it gets the same record",
                group, groups.getStartKeyGroup(), groups.getEndKeyGroup()));
      }
      isJudged[index] =
          !settings.hasWindow()
              || setTick(records[index], group - groups.getStartKeyGroup(), judged);
      if (isJudged[index]) {
        hashes[judged++] = hash;
      }
    }
    return judged;
  }

  /**
   * Moves the clock of a key group to a record, and sets the tick of the next judged key. Returns
   * whether the record is judged.
   */
  private boolean setTick(StreamRecord<T> record, int group, int next) {
    // A source without a strategy for times gives records the second.
    if (!record.hasTimestamp() || record.getTimestamp() == TimestampAssigner.NO_TIMESTAMP) {
      throw new IllegalStateException(
          "a record has no event time: assign timestamps and watermarks before the deduplication");
    }
    long tick = settings.tick(record.getTimestamp());
    long clock = Math.max(clocks[group], tick);
    clocks[group] = clock;
    ticks[next] = clock;
    if (clock - tick <= settings.lateTicks()) {
      return true;
    }
    filterMetrics.late.inc();
    if (lateness == Late.FAIL) {
      throw new IllegalStateException(
          String.format(
              "a record of event time %d is late: the clock of its key group is at %d",
              record.getTimestamp(), (clock - 1) * settings.tickMillis()));
    }
    return lateness == Late.JUDGE;
  }

  // What must not overtake a record

  @Override
  public void prepareSnapshotPreBarrier(long checkpoint) throws Exception {
    flush();
  }

  @Override
  public void processWatermark(Watermark watermark) throws Exception {
    flush();
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
