package echoless.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class SettingsTest {
  private static Settings of(Duration window, Duration lateness) {
    return Settings.of(
        1 << 20, 1e-8, window.toMillis(), lateness.toMillis(), 0, false, 128, 0, null);
  }

  @Test
  void windowAndLatenessAreRoundedUpToTicks() {
    Settings day = of(Duration.ofDays(1), Duration.ofMinutes(5));
    assertEquals(
        "fingerprint:fpr=1.0E-8,replacement=fifo,window=4320,memory=1048576", day.spec());
    assertEquals(4335, day.lateTicks());
    assertEquals(of(Duration.ofHours(1234), Duration.ZERO).lateTicks(), 2222);
    assertEquals(
        "fingerprint:fpr=1.0E-8,replacement=lru,memory=1048576",
        of(Duration.ZERO, Duration.ZERO).spec());
  }

  @Test
  void aSkewIsRememberedBesideTheWindow() {
    Settings day = Settings.of(1 << 20, 1e-8, 86_400_000, 600_000, 3_600_000, true, 128, 0, null);
    assertEquals("stamped:window=4320,skew=210,refresh=true,memory=1048576", day.spec());
    assertEquals(4350, day.lateTicks());
    assertEquals(180, day.skewTicks());
    // A long skew has fewer ticks for the window: a million for all that is remembered.
    Settings hours = Settings.of(1 << 20, 1e-8, 60_000, 0, 36_000_000, true, 128, 0, null);
    assertEquals(50, hours.tickMillis());
    assertEquals("stamped:window=1200,skew=720000,refresh=true,memory=1048576", hours.spec());
  }

  @Test
  void timesAreThoseFrom1970On() {
    for (long time : new long[] {-1, Long.MIN_VALUE, Long.MAX_VALUE}) {
      assertFalse(Settings.isTime(time));
    }
    assertTrue(Settings.isTime(0) && Settings.isTime(Long.MAX_VALUE - 1));
  }

  /** Each option that changes what a filter remembers, by its name, with the values of both. */
  @Test
  void otherSettingsAreRejectedByName() {
    Settings day = of(Duration.ofDays(1), Duration.ZERO);
    day.requireEqual(day);
    day.requireEqual(of(Duration.ofDays(1), Duration.ofMinutes(5)));
    long hour = 3_600_000;
    Settings skewed = Settings.of(1 << 20, 1e-8, 24 * hour, 0, hour, false, 128, 0, null);
    skewed.requireEqual(skewed);
    assertRejected(
        "window: it has PT24H, the job has PT48H", day, of(Duration.ofDays(2), Duration.ZERO));
    // A window is rounded up to ticks, here of 20 s.
    assertRejected(
        "window: it has PT24H, the job has PT24H20S",
        day, of(Duration.ofDays(1).plusMillis(20), Duration.ZERO));
    assertRejected(
        "window: it has PT2S, the job has PT4S",
        of(Duration.ofSeconds(2), Duration.ZERO), of(Duration.ofSeconds(4), Duration.ZERO));
    assertRejected(
        "window: it has PT24H, the job has none", day, of(Duration.ZERO, Duration.ZERO));
    assertRejected(
        "memory: it has 1048576 bytes, the job has 2097152 bytes",
        day, Settings.of(1 << 21, 1e-8, 24 * hour, 0, 0, false, 128, 0, null));
    assertRejected(
        "maximum parallelism: it has 128, the job has 64",
        day, Settings.of(1 << 20, 1e-8, 24 * hour, 0, 0, false, 64, 0, null));
    assertRejected(
        "falsePositiveRate: it has 1.0E-8, the job has 0.001",
        day, Settings.of(1 << 20, 1e-3, 24 * hour, 0, 0, false, 128, 0, null));
    assertRejected(
        "refresh: it has false, the job has true",
        day, Settings.of(1 << 20, 1e-8, 24 * hour, 0, 0, true, 128, 0, null));
    assertRejected(
        "seed: it has 0, the job has 1",
        day, Settings.of(1 << 20, 1e-8, 24 * hour, 0, 0, false, 128, 1, null));
    assertRejected("skew: it has none, the job has PT1H", day, skewed);
    assertRejected(
        "skew: it has PT1H, the job has PT2H",
        skewed, Settings.of(1 << 20, 1e-8, 24 * hour, 0, 2 * hour, false, 128, 0, null));
    assertRejected(
        "lateness: it has none, the job has PT1H",
        skewed, Settings.of(1 << 20, 1e-8, 24 * hour, hour, hour, false, 128, 0, null));
  }

  private static void assertRejected(String text, Settings saved, Settings job) {
    Exception failure = assertThrows(IllegalStateException.class, () -> job.requireEqual(saved));
    assertEquals("the state was saved with another " + text, failure.getMessage());
  }
}
