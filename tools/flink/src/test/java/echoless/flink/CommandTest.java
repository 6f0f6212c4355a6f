package echoless.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A job against the command {@code echoless dedup} on the same stream: one source, in the order of
 * its event times.
 *
 * <p>The fresh records are the same, every one of them, although the memory is too small and keys
 * are evicted: key bytes, seed, memory, rate and window are equal, and neither the number of
 * partitions nor that of tasks affects a verdict. What differs is the origin of ticks: the command
 * counts them from its first record, Flink from 1970. So that the granules of the window begin at
 * the same times, the first record here is whole granules of 10 s after 1970. Elsewhere both find
 * all duplicates within the window, and may differ in those of up to a granule more.
 */
class CommandTest {
  /** Twenty windows. The clock of a filter enters a new era after fourteen. */
  private static final long RECORDS = 100_000;

  private static final Calls CALLS = new Calls(20_000, 10, 0);
  private static final String MEMORY = "64KiB";
  private static final Duration WINDOW = Duration.ofSeconds(50);
  private static final String COMMAND = System.getenv("ECHOLESS_COMMAND");

  @TempDir Path folder;

  @BeforeEach
  void thereIsACommand() {
    if (COMMAND == null) {
      System.out.println("SKIPPED CommandTest: ECHOLESS_COMMAND is not the path of echoless");
    }
    assumeTrue(COMMAND != null, "ECHOLESS_COMMAND is not the path of echoless");
  }

  @Test
  void verdictsAreThoseOfTheCommand() throws Exception {
    compare(Duration.ZERO);
  }

  @Test
  void verdictsInAWindowAreThoseOfTheCommand() throws Exception {
    assertEquals(0, CALLS.time(0) % 10_000);
    compare(WINDOW, "--window", "50s", "--time-field", "3", "--time-format", "ms");
  }

  private void compare(Duration window, String... options) throws Exception {
    List<Long> expected = ofTheCommand(options);
    // Keys are found again, and were forgotten.
    assertTrue(expected.size() > 1.1 * CALLS.distinct() && expected.size() < 0.9 * RECORDS);
    assertEquals(expected, ofAJob(window, 1));
    for (int parallelism : new int[] {2, 4}) {
      // The tasks are not in the order of each other.
      assertEquals(expected, ofAJob(window, parallelism).stream().sorted().toList());
    }
  }

  private static String text(long record) {
    return HexFormat.of().formatHex(CALLS.key(record));
  }

  private List<Long> ofTheCommand(String... options) throws Exception {
    Path input = folder.resolve("calls.csv");
    try (BufferedWriter out = Files.newBufferedWriter(input)) {
      for (long record = 0; record < RECORDS; record++) {
        out.write(record + "," + text(record) + "," + CALLS.time(record) + "\n");
      }
    }
    List<String> command = new ArrayList<>(List.of(COMMAND, "dedup", "--csv", "--key", "2"));
    command.addAll(List.of("--memory", MEMORY));
    command.addAll(List.of(options));
    command.add(input.toString());
    Path output = folder.resolve("fresh.csv");
    ProcessBuilder builder = new ProcessBuilder(command).redirectOutput(output.toFile());
    Process process = builder.redirectError(folder.resolve("errors").toFile()).start();
    assertEquals(0, process.waitFor(), () -> read(folder.resolve("errors")));
    return read(output)
        .lines()
        .map(line -> Long.valueOf(line.substring(0, line.indexOf(','))))
        .toList();
  }

  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (java.io.IOException failure) {
      throw new java.io.UncheckedIOException(failure);
    }
  }

  private static List<Long> ofAJob(Duration window, int parallelism) throws Exception {
    StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(4);
    env.setMaxParallelism(16);
    WatermarkStrategy<Long> times =
        WatermarkStrategy.<Long>forMonotonousTimestamps()
            .withTimestampAssigner((record, before) -> CALLS.time(record));
    DataStream<Long> calls =
        env.fromSource(
                new DataGeneratorSource<>(index -> index, RECORDS, Types.LONG), times, "calls")
            .setParallelism(1);
    Deduplicate<Long> builder =
        Deduplicate.of(calls)
            .key(record -> text(record).getBytes(StandardCharsets.UTF_8))
            .memory(MEMORY);
    if (!window.isZero()) {
      builder.window(window);
    }
    List<Long> fresh = new ArrayList<>();
    try (CloseableIterator<Long> records =
        builder.build().setParallelism(parallelism).executeAndCollect()) {
      records.forEachRemaining(fresh::add);
    }
    return fresh;
  }
}
