package echoless.flink;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** A job on a cluster in this process. It prints {@code call 17} and {@code call 18}. */
final class Example {
  private Example() {}

  public static void main(String[] args) throws Exception {
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
    env.setParallelism(1);
    // The text is the identity of a call, and its number the time in seconds.
    DataStream<String> calls =
        env.fromData("call 17", "call 18", "call 17")
            .assignTimestampsAndWatermarks(
                WatermarkStrategy.<String>forMonotonousTimestamps()
                    .withTimestampAssigner(
                        (call, before) -> Long.parseLong(call.substring(5)) * 1000));
    DataStream<String> fresh =
        Deduplicate.of(calls)
            .key(call -> call.getBytes(StandardCharsets.UTF_8))
            .memory("64MiB")
            .window(Duration.ofHours(24))
            .build();
    fresh.print();
    env.execute();
  }
}
