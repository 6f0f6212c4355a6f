package echoless.flink;

import echoless.Report;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.metrics.MetricGroup;

/**
 * The metrics of a task, in the group {@code echoless} of its operator.
 *
 * <p>Reporters read gauges on threads of their own, and a filter is used by one thread. So gauges
 * read the report that the task took last.
 */
final class FilterMetrics {
  final Counter fresh;
  final Counter duplicates;
  final Counter late;
  final Counter beyondSkew;
  final Counter ahead;
  final Counter unjudged;

  volatile Report report;
  private volatile double batchSize;
  private volatile double nanosPerRecord;

  /** How long the last checkpoint held up the task. */
  volatile long snapshotNanos;

  private static final long MEAN_MILLIS = 1000;

  private long nextMeans;
  private long batches;
  private long records;
  private long nanos;

  FilterMetrics(MetricGroup operator, Report first) {
    MetricGroup group = operator.addGroup("echoless");
    fresh = group.counter("fresh");
    duplicates = group.counter("duplicates");
    late = group.counter("late");
    beyondSkew = group.counter("beyondSkew");
    ahead = group.counter("ahead");
    unjudged = group.counter("unjudged");
    report = first;
    gauge(group, "evictions", () -> report.evictions());
    gauge(group, "fill", () -> report.fill());
    gauge(group, "missAge", () -> report.missAge());
    gauge(group, "expectedFalseDuplicates", () -> report.expectedFalseDuplicates());
    gauge(group, "memory", () -> report.memory());
    gauge(group, "batchSize", () -> batchSize);
    gauge(group, "nanosPerRecord", () -> nanosPerRecord);
    gauge(group, "snapshotNanos", () -> snapshotNanos);
  }

  private static <V> void gauge(MetricGroup group, String name, Gauge<V> gauge) {
    group.gauge(name, gauge);
  }

  /** Counts a batch that was judged in so many nanoseconds. */
  void count(int batch, long batchDuplicates, long batchNanos) {
    duplicates.inc(batchDuplicates);
    fresh.inc(batch - batchDuplicates);
    batches++;
    records += batch;
    nanos += batchNanos;
  }

  /** Shows a new report, and every second the means since the last ones. */
  void show(Report newest, long now) {
    report = newest;
    if (records > 0 && now >= nextMeans) {
      nextMeans = now + MEAN_MILLIS;
      batchSize = (double) records / batches;
      nanosPerRecord = (double) nanos / records;
      batches = 0;
      records = 0;
      nanos = 0;
    }
  }
}
