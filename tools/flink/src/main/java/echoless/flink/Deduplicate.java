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
 * memory, window, false positive rate, refresh, seed, hash key, skew (and lateness with one), and the
 * maximum parallelism of the environment, which is 128 unless set. The memory is divided by it: it must be whole lines of 64
 * bytes for each key group.
 *
 * @param <T> the records of the stream
 */
public final class Deduplicate<T> {
  private static final Pattern SIZE = Pattern.compile("([1-9][0-9]{0,11})([KMGT])iB");
  private static final double DEFAULT_FPR = 1e-8;
  private static final long LINE_BYTES = 64;

  /** A thousand years, so that no sum overflows. */
  private static final Duration LONGEST = Duration.ofDays(365_000);

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
  private Duration skew = Duration.ZERO;
  private Ahead beyondSkew = Ahead.JUDGE;
  private OutputTag<T> beyondSkewTag;
  private Duration maxAdvance = Duration.ZERO;
  private Unjudged unjudged = Unjudged.FAIL;
  private OutputTag<T> unjudgedTag;
  private OutputTag<T> duplicatesTag;
  private Long seed;
  private HashKey hashKey;
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

  /**
   * How far sources may be apart in event time, as they are where one catches up. Unless set, the
   * clock of a key group is the greatest time it has seen, and records of a source that is behind
   * by more than window and lateness are late.
   *
   * <p>With a skew, the clock is the watermark, which is that of the slowest source, and keys are
   * recorded with their own times, up to the skew beyond it. A record is a duplicate if an equal one
   * was recorded at most a window before or after it, in any order of arrival. The filter remembers
   * window, lateness and skew, and a key takes more memory.
   */
  public Deduplicate<T> skew(Duration most) {
    skew = positive("skew", most);
    return this;
  }

  /**
   * What happens to records whose time is beyond the watermark by more than the skew; they
   * {@linkplain Ahead#JUDGE are judged} unless set.
   */
  public Deduplicate<T> beyondSkew(Ahead policy) {
    beyondSkew = Objects.requireNonNull(policy, "policy");
    return this;
  }

  /** Records beyond the watermark by more than the skew go to this side output. */
  public Deduplicate<T> beyondSkewTo(OutputTag<T> tag) {
    beyondSkewTag = Objects.requireNonNull(tag, "tag");
    beyondSkew = Ahead.ASIDE;
    return this;
  }

  /**
   * A record whose time is more than this beyond the clock is too far ahead: it does not move the
   * clock, and {@link #unjudged} says what happens to it. The clock here is the latest time of all
   * records of the task that were not too far ahead, or the watermark; that of the system for the
   * first record. After 1,000 of them in a row, the clock goes on where it would be if the stream had
   * begun with these. No bound unless set.
   */
  public Deduplicate<T> maxAdvance(Duration most) {
    maxAdvance = positive("maxAdvance", most);
    return this;
  }

  /**
   * What happens to records without a key (the key function returned null), with a window also to
   * those without an event time from 1970 on and those that are {@linkplain #maxAdvance too far
   * ahead}; the job {@linkplain Unjudged#FAIL fails} unless set.
   */
  public Deduplicate<T> unjudged(Unjudged policy) {
    unjudged = Objects.requireNonNull(policy, "policy");
    return this;
  }

  /** Records that cannot be judged go to this side output. */
  public Deduplicate<T> unjudgedTo(OutputTag<T> tag) {
    unjudgedTag = Objects.requireNonNull(tag, "tag");
    unjudged = Unjudged.ASIDE;
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

  /**
   * Hashes keys under a secret, so that nobody without it can craft records that suppress others.
   * The keyed hash is slower. Excludes {@link #seed}.
   */
  public Deduplicate<T> hashKey(HashKey secret) {
    hashKey = Objects.requireNonNull(secret, "secret");
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
    require(hasWindow || skew.isZero(), "skew needs a window");
    require(hasWindow || maxAdvance.isZero(), "maxAdvance needs a window");
    require(beyondSkew != Ahead.ASIDE || beyondSkewTag != null, "Ahead.ASIDE needs beyondSkewTo(tag)");
    require(
        !skew.isZero() || beyondSkew == Ahead.JUDGE, "a policy for records ahead needs a skew");
    require(
        unjudged != Unjudged.ASIDE || unjudgedTag != null, "Unjudged.ASIDE needs unjudgedTo(tag)");
    require(
        maxAdvance.isZero() || maxAdvance.compareTo(skew) >= 0,
        "maxAdvance is " + maxAdvance + ", less than the skew of " + skew);
    require(seed == null || hashKey == null, "seed and hashKey exclude each other");
    require(
        skew.isZero() || fpr >= Settings.LEAST_FPR_WITH_SKEW,
        "with a skew, falsePositiveRate is at least " + Settings.LEAST_FPR_WITH_SKEW);
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
            skew.toMillis(),
            refresh,
            maxParallelism,
            seed == null ? 0 : seed,
            hashKey);
    DeduplicateOperator.Policies<T> policies =
        new DeduplicateOperator.Policies<>(
            Policy.of(late, lateTag),
            Policy.of(beyondSkew, beyondSkewTag),
            Policy.of(unjudged, unjudgedTag),
            maxAdvance.toMillis(),
            duplicatesTag);
    DeduplicateOperator<T> operator = new DeduplicateOperator<>(settings, keys, policies);
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
    if (length.compareTo(Duration.ofMillis(1)) < 0 || length.compareTo(LONGEST) > 0) {
      throw new IllegalArgumentException(
          "invalid " + option + " " + length + ": expected a millisecond to " + LONGEST);
    }
    return length;
  }

  private static void require(boolean holds, String otherwise) {
    if (!holds) {
      throw new IllegalStateException("deduplication: " + otherwise);
    }
  }
}
