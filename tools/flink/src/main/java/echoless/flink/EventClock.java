package echoless.flink;

import java.util.function.LongSupplier;

/**
 * The clock of a task: which event times it still remembers, and which are ahead of it.
 *
 * <pre>
 *   window + lateness                  skew
 * |<----------------->|<------------------------------>|
 * late                clock                            beyond the skew
 * ---------------------------------------------------------------------> event time
 * </pre>
 *
 * <p>The clock of a key group is the watermark, which is that of the slowest source, but at most the
 * skew behind the greatest time of the key group. Without a skew it is that time alone, so that
 * verdicts depend on nothing but the records and their order.
 *
 * <p>Apart from that, a time can be too far ahead of all others, by {@code maxAdvance}. A watermark
 * of such a time is ignored, too.
 */
final class EventClock {
  /** After so many records in a row that are too far ahead, the clock goes on at the earliest. */
  static final int MOST_IN_A_ROW = 1000;

  private static final long NONE = -1;

  private final Settings settings;
  private final long maxAdvanceMillis;
  private final LongSupplier now;

  /** The greatest tick of each key group that was judged; 0 before the first. */
  private final long[] greatest;

  /** The tick of the watermark; 0 before the first. */
  private long watermark;

  /** The greatest time of the task that was not too far ahead. */
  private long latestMillis = NONE;

  private int aheadInARow;
  private long earliestAhead;

  /**
   * @param maxAdvanceMillis 0 for none
   * @param now the time of the system, which the first time of all is compared with
   */
  EventClock(Settings settings, long maxAdvanceMillis, int keyGroups, LongSupplier now) {
    this.settings = settings;
    this.maxAdvanceMillis = maxAdvanceMillis;
    this.now = now;
    greatest = new long[keyGroups];
  }

  /** What a key group saves. */
  record Saved(long greatest, long watermark) {}

  Saved[] save() {
    Saved[] saved = new Saved[greatest.length];
    for (int group = 0; group < saved.length; group++) {
      saved[group] = new Saved(greatest[group], watermark);
    }
    return saved;
  }

  /** Key groups of several tasks become one: their watermark is the least. */
  void restore(int group, Saved saved) {
    greatest[group] = saved.greatest;
    if (saved.greatest > 0) {
      latestMillis = Math.max(latestMillis, settings.millis(saved.greatest));
    }
    if (saved.watermark > 0) {
      watermark = watermark == 0 ? saved.watermark : Math.min(watermark, saved.watermark);
    }
  }

  /** Takes a watermark. */
  void moveTo(long watermarkMillis) {
    // Without a window, times do not matter. No time is one before the first and after the last.
    if (!settings.hasWindow() || !Settings.isTime(watermarkMillis)) {
      return;
    }
    if (maxAdvanceMillis > 0) {
      if (watermarkMillis - reference() > maxAdvanceMillis) {
        return;
      }
      latestMillis = Math.max(latestMillis, watermarkMillis);
    }
    watermark = Math.max(watermark, settings.tick(watermarkMillis));
  }

  /** The time that others are compared with for {@code maxAdvance}. */
  long reference() {
    return latestMillis == NONE ? now.getAsLong() : latestMillis;
  }

  /** Whether a record's time is too far ahead; if not, it moves the time that others may have. */
  boolean isTooFarAhead(long millis) {
    if (maxAdvanceMillis == 0) {
      return false;
    }
    if (millis - reference() > maxAdvanceMillis) {
      earliestAhead = aheadInARow == 0 ? millis : Math.min(earliestAhead, millis);
      aheadInARow++;
      if (aheadInARow < MOST_IN_A_ROW) {
        return true;
      }
      latestMillis = earliestAhead;
      if (millis - latestMillis > maxAdvanceMillis) {
        aheadInARow = 0;
        return true;
      }
    }
    aheadInARow = 0;
    latestMillis = Math.max(latestMillis, millis);
    return false;
  }

  /** Whether the memory does not reach from the watermark to a tick. */
  boolean isBeyondSkew(long tick) {
    return settings.skewTicks() > 0 && watermark > 0 && tick - watermark > settings.skewTicks();
  }

  long watermarkMillis() {
    return settings.millis(watermark);
  }

  /** Moves the clock of a key group by a record, and returns the tick at which it is judged. */
  long judge(int group, long tick) {
    greatest[group] = Math.max(greatest[group], tick);
    // With a skew, the filter judges at the record's own time.
    return settings.skewTicks() > 0 ? tick : greatest[group];
  }

  /** The clock of a key group, in ticks; 0 or less before its first record. */
  long clock(int group) {
    if (settings.skewTicks() == 0) {
      return greatest[group];
    }
    return Math.max(watermark, greatest[group] - settings.skewTicks());
  }

  boolean isLate(int group, long tick) {
    return clock(group) - tick > settings.lateTicks();
  }
}
