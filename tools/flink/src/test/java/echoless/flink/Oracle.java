package echoless.flink;

import echoless.Hasher;
import echoless.Partitions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.LongFunction;
import java.util.function.ToLongFunction;

/** The fresh records that a job must find among the first records of a stream. */
final class Oracle {
  private Oracle() {}

  /** One record for each key: the first. */
  static Set<Long> exact(Calls calls, long records) {
    Set<Long> seen = new HashSet<>();
    Set<Long> fresh = new HashSet<>();
    for (long record = 0; record < records; record++) {
      if (seen.add(calls.keyNumber(record))) {
        fresh.add(record);
      }
    }
    return fresh;
  }

  /**
   * The fresh records of a stream with a window and no refresh: those whose key was not recorded, as
   * fresh, with a time at most a window before or after its own. Times are ticks, and the order is
   * that of arrival.
   */
  static <T> Set<T> exact(
      Settings settings, List<T> arrivals, Function<T, ?> key, ToLongFunction<T> time) {
    long window = settings.window().ticks();
    Map<Object, List<Long>> recorded = new HashMap<>();
    Set<T> fresh = new HashSet<>();
    for (T record : arrivals) {
      List<Long> ticks = recorded.computeIfAbsent(key.apply(record), none -> new ArrayList<>());
      long own = tick(settings, time.applyAsLong(record));
      if (ticks.stream().noneMatch(tick -> Math.abs(tick - own) <= window)) {
        ticks.add(own);
        fresh.add(record);
      }
    }
    return fresh;
  }

  /** The tick of an event time. No record has tick 0, at which the clock of a filter begins. */
  static long tick(Settings settings, long eventTimeMillis) {
    return eventTimeMillis / settings.tickMillis() + 1;
  }

  /** What one filter of all key groups finds, one record at a time. */
  static Set<Long> engine(Settings settings, Calls calls, long records) {
    return engine(settings, calls::key, calls, records);
  }

  /** As above, of records whose keys are other bytes. */
  static Set<Long> engine(Settings settings, LongFunction<byte[]> keys, Calls calls, long records) {
    long[] clocks = new long[settings.keyGroups()];
    long[] hash = new long[1];
    long[] tick = new long[1];
    long[] verdict = new long[1];
    Set<Long> fresh = new HashSet<>();
    try (Partitions all =
        Partitions.open(
            settings.spec(), settings.hashing(), settings.keyGroups(), 0, settings.keyGroups() - 1)) {
      for (long record = 0; record < records; record++) {
        hash[0] = Hasher.hash(keys.apply(record), settings.hashing());
        if (settings.hasWindow()) {
          int group = Partitions.partitionOf(hash[0], settings.keyGroups());
          long own = tick(settings, calls.time(record));
          clocks[group] = Math.max(clocks[group], own);
          if (clocks[group] - settings.skewTicks() - own > settings.lateTicks()) {
            fresh.add(record);
            continue;
          }
          tick[0] = settings.skewTicks() > 0 ? own : clocks[group];
        }
        if (all.observe(hash, settings.hasWindow() ? tick : null, 1, verdict) == 0) {
          fresh.add(record);
        }
      }
    }
    return fresh;
  }
}
