package echoless.flink;

import java.time.Duration;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.util.OutputTag;

/**
 * Drops the duplicates of a stream, in fixed memory outside of the Java heap.
 *
 * <pre>{@code
 * DataStream<Call> fresh =
 *     Deduplicate.of(calls)
 *         .key(call -> call.id().getBytes(UTF_8))
 *         .memory("4GiB")
 *         .window(Duration.ofHours(24))
 *         .build();
 * }</pre>
 *
 * <p>Fresh records are forwarded unchanged. Records of one key group keep their order; so do all
 * records at parallelism 1.
 *
 * <p>These settings are part of the state, and a job that changes one rejects earlier checkpoints:
 * memory, window, false positive rate, refresh, seed, and the maximum parallelism of the
 * environment, which is 128 unless set. The memory is divided by it: it must be whole lines of 64
 * bytes for each key group.
 *
 * @param <T> the records of the stream
 */
public final class Deduplicate<T> {
  private static final Pattern SIZE = Pattern.compile("([1-9][0-9]{0,11})([KMGT])iB");
  private static final double DEFAULT_FPR = 1e-8;
  private static final long LINE_BYTES = 64;

  /** What Flink has for operators of up to 85 tasks. */
  private static final int DEFAULT_MAX_PARALLELISM = 128;

  private final DataStream<T> stream;
  private KeyFunction<T> keys;
  private long memory;
  private double fpr = DEFAULT_FPR;
  private Duration window = Duration.ZERO;
  private Duration lateness = Duration.ZERO;
  private boolean refresh;
  private Late late = Late.PASS;
  private OutputTag<T> lateTag;
  private OutputTag<T> duplicatesTag;
  private long seed;
  private String name = "deduplicate";

  private Deduplicate(DataStream<T> stream) {
    this.stream = Objects.requireNonNull(stream, "stream");
  }

  public static <T> Deduplicate<T> of(DataStream<T> stream) {
    return new Deduplicate<>(stream);
  }

  /** The bytes that identify a record. Required. */
  public Deduplicate<T> key(KeyFunction<T> function) {
    keys = Objects.requireNonNull(function, "function");
    return this;
  }

  /**
   * The memory of all filters of the job together, such as {@code 4GiB}. Required.
   *
   * <p>Each key group gets an equal part, and a task the parts of its key groups: at parallelism 4, a
   * quarter. Set {@code taskmanager.memory.task.off-heap.size} to what the tasks of one task manager
   * take, and as much again for the lines that change while a checkpoint is written.
   */
  public Deduplicate<T> memory(String size) {
    memory = bytesOf(size);
    return this;
  }

  /** The highest rate of fresh records that are taken for duplicates; 1e-8 unless set. */
  public Deduplicate<T> falsePositiveRate(double rate) {
    if (!(rate > 0 && rate < 1)) {
      throw new IllegalArgumentException(
          "invalid falsePositiveRate " + rate + ": expected a rate between 0 and 1 (exclusive)");
    }
    fpr = rate;
    return this;
  }

  /**
   * A record is a duplicate only of one at most so much older in event time. A key is forgotten once
   * it is a fifth of the window older than that. Without a window, the filter forgets the keys that
   * were not seen for longest once it is full.
   */
  public Deduplicate<T> window(Duration length) {
    window = positive("window", length);
    return this;
  }

  /** Whether a duplicate begins the window of its key anew; it does not unless set. */
  public Deduplicate<T> refresh(boolean begins) {
    refresh = begins;
    return this;
  }

  /** Records are late from this age beyond the window on; zero unless set. */
  public Deduplicate<T> lateness(Duration beyond) {
    lateness = positive("lateness", beyond);
    return this;
  }

  /** What happens to late records; they {@linkplain Late#PASS pass} unless set. */
  public Deduplicate<T> late(Late policy) {
    late = Objects.requireNonNull(policy, "policy");
    return this;
  }

  /** Late records go to this side output. */
  public Deduplicate<T> lateTo(OutputTag<T> tag) {
    lateTag = Objects.requireNonNull(tag, "tag");
    late = Late.ASIDE;
    return this;
  }

  /** Duplicates go to this side output; they are dropped unless set. */
  public Deduplicate<T> duplicatesTo(OutputTag<T> tag) {
    duplicatesTag = Objects.requireNonNull(tag, "tag");
    return this;
  }

  /** The seed of the key hash; 0 unless set. */
  public Deduplicate<T> seed(long value) {
    seed = value;
    return this;
  }

  /** The name of the operator and its uid. Two deduplications of a job need two names. */
  public Deduplicate<T> name(String operator) {
    name = Objects.requireNonNull(operator, "operator");
    return this;
  }

  /**
   * Adds the operator to the job and returns the fresh records.
   *
   * @throws IllegalStateException if key or memory is not set, or options contradict each other
   */
  public SingleOutputStreamOperator<T> build() {
    require(keys != null, "key is not set");
    require(memory > 0, "memory is not set");
    require(late != Late.ASIDE || lateTag != null, "Late.ASIDE needs lateTo(tag)");
    boolean hasWindow = !window.isZero();
    require(hasWindow || lateness.isZero(), "lateness needs a window");
    require(hasWindow || late == Late.PASS, "a policy for late records needs a window");
    require(hasWindow || !refresh, "refresh needs a window");
    int maxParallelism = stream.getExecutionEnvironment().getMaxParallelism();
    if (maxParallelism <= 0) {
      maxParallelism = DEFAULT_MAX_PARALLELISM;
    }
    long unit = LINE_BYTES * maxParallelism;
    require(
        memory % unit == 0,
        String.format(
            "memory of %d bytes is not a multiple of %d, a line of %d bytes for each of the %d key "
                + "groups (the maximum parallelism of the environment): take %dKiB",
            memory, unit, LINE_BYTES, maxParallelism, roundedUp(memory, unit) >> 10));
    Settings settings =
        Settings.of(
            memory,
            fpr,
            window.toMillis(),
            lateness.toMillis(),
            refresh,
            maxParallelism,
            seed);
    DeduplicateOperator<T> operator =
        new DeduplicateOperator<>(settings, keys, late, duplicatesTag, lateTag);
    return stream
        .keyBy(new KeyGroups<>(keys, settings), Types.INT)
        .transform(name, stream.getType(), operator)
        .uid(name)
        .setMaxParallelism(maxParallelism);
  }

  private static long bytesOf(String size) {
    Matcher matcher = SIZE.matcher(size);
    if (matcher.matches()) {
      long number = Long.parseLong(matcher.group(1));
      int bits = 10 * " KMGT".indexOf(matcher.group(2));
      if (number <= Long.MAX_VALUE >> bits) {
        return number << bits;
      }
    }
    throw new IllegalArgumentException(
        "invalid memory " + size + ": expected such as 512MiB or 4GiB");
  }

  /** The next multiple of both the unit and a KiB, as which {@link #memory} can be set. */
  private static long roundedUp(long bytes, long unit) {
    long both = unit * Math.max(1, 1024 / Long.lowestOneBit(unit));
    return (bytes + both - 1) / both * both;
  }

  private static Duration positive(String option, Duration length) {
    if (length.toMillis() < 1) {
      throw new IllegalArgumentException(
          "invalid " + option + " " + length + ": expected at least a millisecond");
    }
    return length;
  }

  private static void require(boolean holds, String otherwise) {
    if (!holds) {
      throw new IllegalStateException("deduplication: " + otherwise);
    }
  }
}
