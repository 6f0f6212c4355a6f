package echoless.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class SettingsTest {
  private static Settings of(Duration window, Duration lateness) {
    return Settings.of(1 << 20, 1e-8, window.toMillis(), lateness.toMillis(), false, 128, 0);
  }

  @Test
  void aTickIsAtMostATwoThousandthOfTheWindow() {
    assertEquals(20_000, Settings.tickOf(Duration.ofDays(1).toMillis()));
    assertEquals(2_000_000, Settings.tickOf(Duration.ofHours(1234).toMillis()));
    assertEquals(1, Settings.tickOf(3999));
    assertEquals(2, Settings.tickOf(4000));
    assertEquals(1, Settings.tickOf(1));
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
  void timesBefore1970AreRejected() {
    Settings day = of(Duration.ofDays(1), Duration.ZERO);
    assertEquals(1, day.tick(0));
    assertEquals(2, day.tick(20_000));
    Exception failure = assertThrows(IllegalArgumentException.class, () -> day.tick(-1));
    assertEquals(
        "invalid event time -1: expected milliseconds since 1970", failure.getMessage());
    assertThrows(IllegalArgumentException.class, () -> day.tick(Long.MAX_VALUE));
  }

  @Test
  void otherSettingsAreRejectedByName() {
    Settings day = of(Duration.ofDays(1), Duration.ZERO);
    day.requireEqual(day);
    day.requireEqual(of(Duration.ofDays(1), Duration.ofMinutes(5)));
    assertRejected(
        "specification", day, of(Duration.ofDays(2), Duration.ZERO));
    assertRejected(
        "specification", day, Settings.of(1 << 21, 1e-8, 86_400_000, 0, false, 128, 0));
    assertRejected(
        "maximum parallelism", day, Settings.of(1 << 20, 1e-8, 86_400_000, 0, false, 64, 0));
    assertRejected(
        "tick in milliseconds", of(Duration.ofSeconds(2), Duration.ZERO),
        Settings.of(1 << 20, 1e-8, 4_000, 0, false, 128, 0));
    assertRejected(
        "seed of the key hash", day, Settings.of(1 << 20, 1e-8, 86_400_000, 0, false, 128, 1));
  }

  private static void assertRejected(String name, Settings saved, Settings job) {
    Exception failure = assertThrows(IllegalStateException.class, () -> job.requireEqual(saved));
    assertEquals(
        "the state was saved with another " + name,
        failure.getMessage().substring(0, failure.getMessage().indexOf(':')));
  }
}
