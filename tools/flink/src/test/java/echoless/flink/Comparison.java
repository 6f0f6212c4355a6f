package echoless.flink;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.SplittableRandom;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.StateBackendOptions;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Compares the operator with Flink's own way, a {@code ValueState} with a time to live for each key,
 * on one task manager of processes: {@code Comparison RECORDS [WAY ...]}.
 *
 * <p>{@code none} only routes the records, which is the part of a job that no way avoids.
 */
final class Comparison {
  private static final TypeInformation<Tuple2<Long, Long>> KEY = Types.TUPLE(Types.LONG, Types.LONG);
  private static final Duration WINDOW = Duration.ofHours(24);

  private Comparison() {}

  public static void main(String[] args) throws Exception {
    long records = Long.parseLong(args[0]);
    String[] ways =
        args.length > 1
            ? java.util.Arrays.copyOfRange(args, 1, args.length)
            : new String[] {"none", "echoless", "hashmap", "rocksdb"};
    System.out.println("way,records,wall_s,cpu_s,records_per_cpu_s,state_bytes,checkpoint_ms,restore_ms");
    for (String way : ways) {
      measure(way, records);
    }
  }

  private static void measure(String way, long records) throws Exception {
    Path folder = Files.createTempDirectory("comparison");
    // The 13 bytes that the guide advises for each key; 63 of 100 records have a new one.
    long filter = Math.max(16, records * 63 / 100 * 13 >> 20);
    // A state on the heap has about 150 bytes a key.
    int heap = (int) Math.max(1024, records * 200 / 1_000_000);
    try (LocalCluster cluster = new LocalCluster(folder, 1, heap, (int) (2 * filter))) {
      Process taskManager = cluster.startTaskManager();
      Configuration config = LocalCluster.restarting(folder, 10_000);
      config.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, true);
      if (way.equals("rocksdb")) {
        config.set(StateBackendOptions.STATE_BACKEND, way);
      }
      // The first job waits for the cluster and warms it up.
      JobClient first = submit(cluster, config, way, records / 10, filter);
      awaitRecords(cluster, first, records / 10);
      first.cancel().get();

      Duration before = taskManager.info().totalCpuDuration().orElseThrow();
      long begin = System.nanoTime();
      JobClient job = submit(cluster, config, way, records, filter);
      awaitRecords(cluster, job, records);
      double wall = (System.nanoTime() - begin) / 1e9;
      Duration after = taskManager.info().totalCpuDuration().orElseThrow();
      double cpu = after.minus(before).toMillis() / 1e3;
      JsonNode checkpoint = awaitCheckpoint(cluster, job, System.currentTimeMillis());
      cluster.startTaskManager();
      cluster.killTaskManager();
      long restore = awaitRestore(cluster, job);
      System.out.printf(
          Locale.ROOT,
          "%s,%d,%.1f,%.1f,%.0f,%d,%d,%d%n",
          way,
          records,
          wall,
          cpu,
          records / cpu,
          checkpoint.path("state_size").asLong(),
          checkpoint.path("end_to_end_duration").asLong(),
          restore);
    }
  }

  /** Starts a job that takes a record now and then behind its stream, so that it does not end. */
  private static JobClient submit(
      LocalCluster cluster, Configuration config, String way, long records, long filter)
      throws Exception {
    StreamExecutionEnvironment env = cluster.environment(config);
    env.setParallelism(1);
    env.getConfig().enableObjectReuse();
    build(env, way, records, filter);
    return env.executeAsync(way);
  }

  /** Waits until the task that judges has so many records. */
  private static void awaitRecords(LocalCluster cluster, JobClient job, long records)
      throws Exception {
    while (judge(cluster, job).path("metrics").path("read-records").asLong() < records) {
      requireRunning(job);
      Thread.sleep(200);
    }
  }

  /** Waits for a checkpoint that begins after a time, and returns what Flink has about it. */
  private static JsonNode awaitCheckpoint(LocalCluster cluster, JobClient job, long time)
      throws Exception {
    while (true) {
      JsonNode latest =
          get(cluster, "/jobs/" + job.getJobID() + "/checkpoints").path("latest").path("completed");
      if (latest.path("trigger_timestamp").asLong() > time) {
        return latest;
      }
      requireRunning(job);
      Thread.sleep(200);
    }
  }

  /** Waits until the task that judges runs again, and returns how long it has read its state. */
  private static long awaitRestore(LocalCluster cluster, JobClient job) throws Exception {
    String judge = judge(cluster, job).path("id").asText();
    while (true) {
      JsonNode task =
          get(cluster, "/jobs/" + job.getJobID() + "/vertices/" + judge).path("subtasks").path(0);
      if (task.path("attempt").asInt() > 0 && task.path("status").asText().equals("RUNNING")) {
        return task.path("status-duration").path("INITIALIZING").asLong();
      }
      Thread.sleep(200);
    }
  }

  private static void requireRunning(JobClient job) throws Exception {
    if (job.getJobStatus().get().isGloballyTerminalState()) {
      job.getJobExecutionResult().get();
    }
  }

  /** What Flink has about the last task of a job. */
  private static JsonNode judge(LocalCluster cluster, JobClient job) throws Exception {
    JsonNode tasks = get(cluster, "/jobs/" + job.getJobID()).path("vertices");
    return tasks.path(tasks.size() - 1);
  }

  private static JsonNode get(LocalCluster cluster, String path)
      throws IOException, InterruptedException {
    URI address = URI.create("http://127.0.0.1:" + cluster.restPort() + path);
    HttpResponse<String> answer =
        HttpClient.newHttpClient()
            .send(HttpRequest.newBuilder(address).build(), HttpResponse.BodyHandlers.ofString());
    return new ObjectMapper().readTree(answer.body());
  }

  private static void build(
      StreamExecutionEnvironment env, String way, long records, long filter) {
    // 37 of 100 records are duplicates. The stream is as long as the window.
    Calls calls = new Calls(records, 86_400_000 / records, 0);
    DataStream<Tuple2<Long, Long>> input =
        env.fromSource(
            new DataGeneratorSource<>(
                index -> Tuple2.of(calls.keyNumber(index), index), records, KEY),
            WatermarkStrategy.<Tuple2<Long, Long>>forMonotonousTimestamps()
                .withTimestampAssigner((record, time) -> calls.time(record.f1)),
            "calls");
    DataStream<Tuple2<Long, Long>> later =
        env.fromSource(
            new DataGeneratorSource<>(
                index -> Tuple2.of(~index, index),
                Long.MAX_VALUE,
                RateLimiterStrategy.perSecond(1),
                KEY),
            WatermarkStrategy.<Tuple2<Long, Long>>forMonotonousTimestamps()
                .withTimestampAssigner((record, time) -> calls.time(0)),
            "later calls");
    input =
        input
            .map(record -> Tuple2.of(mix(record.f0), mix(~record.f0)), KEY)
            .union(later);
    DataStream<Tuple2<Long, Long>> fresh =
        switch (way) {
          case "none" -> input.keyBy(record -> record, KEY).map(record -> record, KEY);
          case "echoless" ->
              Deduplicate.of(input)
                  .key(Comparison::bytes)
                  .memory(filter + "MiB")
                  .window(WINDOW)
                  .build();
          case "hashmap", "rocksdb" -> input.keyBy(record -> record, KEY).process(new FirstOfKey());
          default -> throw new IllegalArgumentException("no way of this name: " + way);
        };
    fresh.sinkTo(new DiscardingSink<>());
  }

  /** As random as keys are, so that no backend stores them in fewer bytes. */
  private static long mix(long number) {
    return new SplittableRandom(number).nextLong();
  }

  private static byte[] bytes(Tuple2<Long, Long> key) {
    return ByteBuffer.allocate(16).putLong(key.f0).putLong(key.f1).array();
  }

  /** Flink's own way. Its time to live is in processing time, which is all that Flink has. */
  private static final class FirstOfKey
      extends KeyedProcessFunction<Tuple2<Long, Long>, Tuple2<Long, Long>, Tuple2<Long, Long>> {
    private transient ValueState<Boolean> seen;

    @Override
    public void open(OpenContext context) {
      ValueStateDescriptor<Boolean> descriptor =
          new ValueStateDescriptor<>("seen", Types.BOOLEAN);
      descriptor.enableTimeToLive(StateTtlConfig.newBuilder(WINDOW).build());
      seen = getRuntimeContext().getState(descriptor);
    }

    @Override
    public void processElement(
        Tuple2<Long, Long> record, Context context, Collector<Tuple2<Long, Long>> out)
        throws Exception {
      if (seen.value() == null) {
        seen.update(true);
        out.collect(record);
      }
    }
  }
}
