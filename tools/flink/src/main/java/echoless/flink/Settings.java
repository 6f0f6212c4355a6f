package echoless.flink;

import echoless.Hasher;
import echoless.Hashing;
import echoless.Partitions.Window;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.api.common.eventtime.TimestampAssigner;

/**
 * What decides the verdicts of a job. A savepoint holds it, and a job with other settings rejects
 * the savepoint.
 *
 * @param spec the specification of the whole filter, whose window is in ticks
 * @param memory the bytes of the whole filter
 * @param keyGroups the number of key groups, which is that of the filter's partitions
 * @param tickMillis the milliseconds of a tick; 0 without a window
 * @param lateTicks the age in ticks from which on a record is late
 * @param seed of the key hash
 * @param skewTicks how far keys may be ahead of the watermark, in ticks; 0 without a skew
 * @param hashKey the secret of the key hash; null for none
 */
record Settings(
    String spec,
    long memory,
    int keyGroups,
    long tickMillis,
    long lateTicks,
    long seed,
    long skewTicks,
    HashKey hashKey)
    implements Serializable {

  /** The rate of full lines with a skew: eight slots, each with 40 bits of the key hash. */
  static final double LEAST_FPR_WITH_SKEW = 8.0 / (1L << 40);

  static Settings of(
      long memory,
      double fpr,
      long windowMillis,
      long latenessMillis,
      long skewMillis,
      boolean refresh,
      int keyGroups,
      long seed,
      HashKey hashKey) {
    String policy = windowMillis > 0 && !refresh ? "fifo" : "lru";
    String spec = "fingerprint:fpr=" + fpr + ",replacement=" + policy;
    if (windowMillis == 0) {
      spec += ",memory=" + memory;
      return new Settings(spec, memory, keyGroups, 0, 0, seed, 0, hashKey);
    }
    Window window = Window.of(windowMillis, latenessMillis, skewMillis);
    spec =
        window.skewTicks() > 0
            ? "stamped:window="
                + window.ticks()
                + ",skew="
                + window.beyondTicks()
                + ",refresh="
                + refresh
            : spec + ",window=" + window.ticks();
    spec += ",memory=" + memory;
    return new Settings(
        spec,
        memory,
        keyGroups,
        window.tickMillis(),
        window.lateTicks(),
        seed,
        window.skewTicks(),
        hashKey);
  }

  /** The window in ticks. */
  Window window() {
    return new Window(
        tickMillis, Long.parseLong(option("window")), lateTicks, skewTicks, latenessTicks());
  }

  /** Reads the secret, if there is one. */
  Hashing hashing() {
    if (hashKey == null) {
      return Hashing.seeded(seed);
    }
    try {
      return Hashing.secret(hashKey.read());
    } catch (Exception failure) {
      throw new IllegalStateException("the hashKey of the deduplication cannot be read", failure);
    }
  }

  /** A number by which a state recognises the secret, and that says nothing about it; 0 for none. */
  long hashKeyId(Hashing hashing) {
    byte[] text = "the hash key of a deduplication".getBytes(StandardCharsets.UTF_8);
    return hashKey == null ? 0 : Hasher.hash(text, hashing) | 1;
  }

  boolean hasWindow() {
    return tickMillis > 0;
  }

  /**
   * Whether a number is an event time: milliseconds since 1970. The least one stands for none, the
   * greatest for the end of all times, as that of a global window does.
   */
  static boolean isTime(long millis) {
    return millis >= 0 && millis != Long.MAX_VALUE && millis != TimestampAssigner.NO_TIMESTAMP;
  }

  /** Rejects state of other settings, by the name of the option that differs. */
  void requireEqual(Settings saved) {
    require("memory", saved.memory + " bytes", memory + " bytes");
    require("maximum parallelism", saved.keyGroups, keyGroups);
    require("window", saved.span("window"), span("window"));
    require("refresh", saved.refresh(), refresh());
    if (skewTicks > 0 || saved.skewTicks() > 0) {
      // Without a skew, lateness decides which records are judged, and not what is remembered.
      require("skew", saved.spanOf(saved.skewTicks), spanOf(skewTicks));
      require("lateness", saved.spanOf(saved.latenessTicks()), spanOf(latenessTicks()));
    } else {
      require("falsePositiveRate", saved.option("fpr"), option("fpr"));
    }
    require("seed", saved.seed, seed);
    require("specification", saved.spec, spec);
    require("tick in milliseconds", saved.tickMillis, tickMillis);
  }

  private static void require(String what, Object saved, Object expected) {
    if (!saved.equals(expected)) {
      throw new IllegalStateException(
          String.format(
              "the state was saved with another %s: it has %s, the job has %s",
              what, saved, expected));
    }
  }

  /** Rejects state of another secret, by what {@link #hashKeyId} returned. */
  static void requireEqualHashKeys(long saved, long expected) {
    if (saved != expected) {
      String other =
          saved == 0
              ? "without a hashKey, and the job has one"
              : "with " + (expected == 0 ? "a hashKey, and the job has none" : "another hashKey");
      throw new IllegalStateException("the state was saved " + other);
    }
  }

  private String option(String name) {
    Matcher matcher = Pattern.compile("[:,]" + name + "=([^,]*)").matcher(spec);
    return matcher.find() ? matcher.group(1) : "none";
  }

  private boolean refresh() {
    return hasWindow()
        && (option("refresh").equals("true") || option("replacement").equals("lru"));
  }

  private long latenessTicks() {
    return lateTicks - Long.parseLong(option("window"));
  }

  private String span(String name) {
    return hasWindow() ? spanOf(Long.parseLong(option(name))) : "none";
  }

  private String spanOf(long ticks) {
    return ticks == 0 ? "none" : Duration.ofMillis(ticks * tickMillis).toString();
  }
}
