package echoless.flink;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;

/**
 * A job that deduplicates calls: a source (one task of it is in order), some tasks that judge, and
 * files that are committed with the checkpoints.
 *
 * @param records the length of the stream
 * @param perCheckpoint the records between two checkpoints; 0 for no limit. So what a test does
 *     between checkpoints meets a running job, however slow the machine is.
 * @param window zero for none
 * @param sources the number of tasks of the source
 */
record CallsJob(
    Calls calls, long records, int perCheckpoint, String memory, Duration window, int sources) {
  static final int KEY_GROUPS = 16;

  /** A job that does not wait for checkpoints. */
  static CallsJob fast(Calls calls, long records, Duration window) {
    return new CallsJob(calls, records, 0, "4MiB", window, 1);
  }

  CallsJob perCheckpoint(int limit) {
    return new CallsJob(calls, records, limit, memory, window, sources);
  }

  CallsJob memory(String size) {
    return new CallsJob(calls, records, perCheckpoint, size, window, sources);
  }

  CallsJob sources(int tasks) {
    return new CallsJob(calls, records, perCheckpoint, memory, window, tasks);
  }

  /** The settings that the builder of the job derives. */
  Settings settings() {
    return Settings.of(4 << 20, 1e-8, window.toMillis(), 0, 0, false, KEY_GROUPS, 0, null);
  }

  void build(StreamExecutionEnvironment env, int parallelism, KeyFunction<Long> keys, Path out) {
    env.setMaxParallelism(KEY_GROUPS);
    DataGeneratorSource<Long> source =
        perCheckpoint == 0
            ? new DataGeneratorSource<>(index -> index, records, Types.LONG)
            : new DataGeneratorSource<>(
                index -> index,
                records,
                RateLimiterStrategy.perCheckpoint(perCheckpoint),
                Types.LONG);
    Calls stream = calls;
    WatermarkStrategy<Long> times =
        WatermarkStrategy.<Long>forMonotonousTimestamps()
            .withTimestampAssigner((record, before) -> stream.time(record));
    DataStream<Long> input =
        env.fromSource(source, times, "calls").setParallelism(sources).uid("calls");
    Deduplicate<Long> builder = Deduplicate.of(input).key(keys).memory(memory);
    if (!window.isZero()) {
      builder.window(window);
    }
    FileSink<Long> sink =
        FileSink.forRowFormat(
                new org.apache.flink.core.fs.Path(out.toUri()), new SimpleStringEncoder<Long>())
            .withRollingPolicy(OnCheckpointRollingPolicy.build())
            .build();
    builder.build().setParallelism(parallelism).sinkTo(sink).setParallelism(1).uid("fresh");
  }

  /** The records in committed files. */
  static List<Long> read(Path folder) {
    List<Long> records = new ArrayList<>();
    if (!Files.exists(folder)) {
      return records;
    }
    SimpleFileVisitor<Path> reader =
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
              throws IOException {
            if (!file.getFileName().toString().startsWith(".")) {
              Files.readAllLines(file).forEach(line -> records.add(Long.valueOf(line)));
            }
            return FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult visitFileFailed(Path file, IOException failure)
              throws IOException {
            if (failure instanceof NoSuchFileException) {
              // It is committed under another name meanwhile, or was given up.
              return FileVisitResult.CONTINUE;
            }
            throw failure;
          }
        };
    try {
      Files.walkFileTree(folder, reader);
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
    return records;
  }
}
