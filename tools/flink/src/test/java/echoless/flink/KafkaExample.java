package echoless.flink;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.kafka.common.TopicPartition;

/**
 * From Kafka to Kafka, exactly once: reads calls from a topic, drops the duplicates of a day, and
 * writes in transactions that end with the checkpoints.
 *
 * <p>A call is {@code IDENTITY,MILLISECONDS,...}. Readers of the output must read committed
 * records only.
 */
final class KafkaExample {
  private KafkaExample() {}

  /**
   * Adds the job to an environment that takes checkpoints.
   *
   * @param until the offset at which the job ends, of the topic's one partition
   */
  static void build(
      StreamExecutionEnvironment env, String brokers, String from, String to, long until) {
    KafkaSource<String> source =
        KafkaSource.<String>builder()
            .setBootstrapServers(brokers)
            .setTopics(from)
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setBounded(OffsetsInitializer.offsets(Map.of(new TopicPartition(from, 0), until)))
            .setValueOnlyDeserializer(new SimpleStringSchema())
            .build();
    WatermarkStrategy<String> times =
        WatermarkStrategy.<String>forMonotonousTimestamps()
            .withTimestampAssigner((call, before) -> Long.parseLong(call.split(",", 3)[1]));
    KafkaSink<String> sink =
        KafkaSink.<String>builder()
            .setBootstrapServers(brokers)
            .setRecordSerializer(
                KafkaRecordSerializationSchema.builder()
                    .setTopic(to)
                    .setValueSerializationSchema(new SimpleStringSchema())
                    .build())
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix(to)
            .setProperty("transaction.timeout.ms", "60000")
            .build();
    Deduplicate.of(env.fromSource(source, times, from).setParallelism(1).uid(from))
        .key(call -> call.substring(0, call.indexOf(',')).getBytes(StandardCharsets.UTF_8))
        .memory("4MiB")
        .window(Duration.ofHours(24))
        .build()
        .sinkTo(sink)
        .uid(to);
  }
}
