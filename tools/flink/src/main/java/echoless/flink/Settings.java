package echoless.flink;

import echoless.Hashing;
import java.io.Serializable;

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
 */
record Settings(
    String spec, long memory, int keyGroups, long tickMillis, long lateTicks, long seed)
    implements Serializable {

  /** A window has at least so many ticks, unless a tick would be below a millisecond. */
  private static final long MIN_TICKS = 2000;

  static Settings of(
      long memory,
      double fpr,
      long windowMillis,
      long latenessMillis,
      boolean refresh,
      int keyGroups,
      long seed) {
    String policy = windowMillis > 0 && !refresh ? "fifo" : "lru";
    String spec = "fingerprint:fpr=" + fpr + ",replacement=" + policy;
    if (windowMillis == 0) {
      return new Settings(spec + ",memory=" + memory, memory, keyGroups, 0, 0, seed);
    }
    long tick = tickOf(windowMillis);
    long window = ceilDiv(windowMillis, tick);
    long late = ceilDiv(Math.addExact(windowMillis, latenessMillis), tick);
    spec += ",window=" + window + ",memory=" + memory;
    return new Settings(spec, memory, keyGroups, tick, late, seed);
  }

  /** The longest of 1, 2 or 5 times a power of ten that is at most a 2000th of the window. */
  static long tickOf(long windowMillis) {
    long tick = 1;
    for (long power = 1; power <= windowMillis / MIN_TICKS; power *= 10) {
      for (long digit : new long[] {1, 2, 5}) {
        if (digit * power <= windowMillis / MIN_TICKS) {
          tick = digit * power;
        }
      }
    }
    return tick;
  }

  private static long ceilDiv(long dividend, long divisor) {
    return -Math.floorDiv(-dividend, divisor);
  }

  Hashing hashing() {
    return Hashing.seeded(seed);
  }

  boolean hasWindow() {
    return tickMillis > 0;
  }

  /** The tick of an event time. No record has tick 0, at which the clock of a filter begins. */
  long tick(long eventTimeMillis) {
    // The greatest number stands for the end of all times, as that of a global window does.
    if (eventTimeMillis < 0 || eventTimeMillis == Long.MAX_VALUE) {
      throw new IllegalArgumentException(
          "invalid event time " + eventTimeMillis + ": expected milliseconds since 1970");
    }
    return eventTimeMillis / tickMillis + 1;
  }

  /** Rejects state of other settings, with the name of what differs. */
  void requireEqual(Settings saved) {
    require("specification", saved.spec, spec);
    require("maximum parallelism", saved.keyGroups, keyGroups);
    require("tick in milliseconds", saved.tickMillis, tickMillis);
    require("seed of the key hash", saved.seed, seed);
    // Lateness decides which records are judged, and not what the filter remembers.
  }

  private static void require(String what, Object saved, Object expected) {
    if (!saved.equals(expected)) {
      throw new IllegalStateException(
          String.format(
              "the state was saved with another %s: it has %s, the job has %s",
              what, saved, expected));
    }
  }
}
