package echoless.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import java.util.function.Consumer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.junit.jupiter.api.Test;

/** Every wrong option is an exception where the job is built. */
class DeduplicateTest {
  private static final Duration MINUTE = Duration.ofMinutes(1);

  private static void rejects(String text, Consumer<Deduplicate<Long>> options) {
    rejects(text, 128, options);
  }

  private static void rejects(String text, int keyGroups, Consumer<Deduplicate<Long>> options) {
    StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment();
    env.setMaxParallelism(keyGroups);
    Deduplicate<Long> builder =
        Deduplicate.of(env.fromData(1L)).key(record -> new byte[1]).memory("1MiB");
    Exception failure =
        assertThrows(
            RuntimeException.class,
            () -> {
              options.accept(builder);
              builder.build();
            });
    assertEquals(text, failure.getMessage());
  }

  @Test
  void valuesThatAreNotAllowed() {
    for (String size : new String[] {"4 GiBs", "4GB", "0MiB", "-1MiB", "", "9000000TiB"}) {
      rejects(
          "invalid memory " + size + ": expected such as 512MiB or 4GiB",
          builder -> builder.memory(size));
    }
    String allowed = ": expected a millisecond to PT8760000H";
    rejects("invalid window PT0S" + allowed, builder -> builder.window(Duration.ZERO));
    rejects(
        "invalid lateness PT-1S" + allowed, builder -> builder.lateness(Duration.ofSeconds(-1)));
    rejects("invalid skew PT0.000001S" + allowed, builder -> builder.skew(Duration.ofNanos(1000)));
    Duration longest = Duration.ofSeconds(Long.MAX_VALUE);
    rejects("invalid maxAdvance " + longest + allowed, builder -> builder.maxAdvance(longest));
    rejects(
        "invalid hashKey of 15 bytes: expected 16 bytes",
        builder -> builder.hashKey(HashKey.of(new byte[15])));
    for (double rate : new double[] {0, 1, -1, Double.NaN}) {
      rejects(
          "invalid falsePositiveRate " + rate + ": expected a rate between 0 and 1 (exclusive)",
          builder -> builder.falsePositiveRate(rate));
    }
  }

  @Test
  void optionsThatContradictEachOther() {
    rejects("deduplication: lateness needs a window", builder -> builder.lateness(MINUTE));
    rejects("deduplication: refresh needs a window", builder -> builder.refresh(true));
    rejects(
        "deduplication: a policy for late records needs a window",
        builder -> builder.late(Late.FAIL));
    rejects(
        "deduplication: Late.ASIDE needs lateTo(tag)",
        builder -> builder.window(MINUTE).late(Late.ASIDE));
    rejects("deduplication: skew needs a window", builder -> builder.skew(MINUTE));
    rejects("deduplication: maxAdvance needs a window", builder -> builder.maxAdvance(MINUTE));
    rejects(
        "deduplication: a policy for records ahead needs a skew",
        builder -> builder.window(MINUTE).beyondSkew(Ahead.PASS));
    rejects(
        "deduplication: Ahead.ASIDE needs beyondSkewTo(tag)",
        builder -> builder.window(MINUTE).skew(MINUTE).beyondSkew(Ahead.ASIDE));
    rejects(
        "deduplication: Unjudged.ASIDE needs unjudgedTo(tag)",
        builder -> builder.unjudged(Unjudged.ASIDE));
    rejects(
        "deduplication: maxAdvance is PT1M, less than the skew of PT2M",
        builder -> builder.window(MINUTE).skew(MINUTE.multipliedBy(2)).maxAdvance(MINUTE));
    rejects(
        "deduplication: seed and hashKey exclude each other",
        builder -> builder.seed(0).hashKey(HashKey.of(new byte[16])));
    rejects(
        "deduplication: with a skew, falsePositiveRate is at least 7.275957614183426E-12",
        builder -> builder.window(MINUTE).skew(MINUTE).falsePositiveRate(7e-12));
    rejects(
        "deduplication: memory of 1048576 bytes is not a multiple of 6400, a line of 64 bytes for "
            + "each of the 100 key groups (the maximum parallelism of the environment): take 1025KiB",
        100,
        builder -> {});
    StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment();
    Deduplicate<Long> unset = Deduplicate.of(env.fromData(1L));
    Exception failure = assertThrows(IllegalStateException.class, unset::build);
    assertEquals("deduplication: key is not set", failure.getMessage());
    failure = assertThrows(IllegalStateException.class, unset.key(record -> new byte[1])::build);
    assertEquals("deduplication: memory is not set", failure.getMessage());
  }
}
