package echoless.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The Kafka example on a cluster of processes, with a broker of one process. */
class KafkaTest {
  private static final Path BROKER = Path.of("..", "kafka", "tests", "broker", "start.sh");
  private static final int PER_SECOND = 10_000;
  private static final long PART = 4L * PER_SECOND;

  @TempDir Path folder;

  private String brokers;

  /** Calls up to here may be written: the job does not end before the last kill. */
  private final AtomicLong produced = new AtomicLong();

  @Test
  void committedOutputIsThatOfOneFilter() throws Exception {
    assumeTrue(
        broker("--resolve").inheritIO().start().waitFor() == 0,
        "SKIPPED: the broker cannot be downloaded");
    int kills = Integer.getInteger("echoless.kills", 1);
    // A wait for output allows one; a kill waits once or twice. Two are left for the end.
    long records = 2 * PART * (kills + 1L);
    Calls calls = new Calls(records / 3, 10, 3_000);
    // The next one is that of the controller.
    int port = LocalCluster.freePorts(2);
    brokers = "127.0.0.1:" + port;
    Process broker = startBroker(port);
    try (LocalCluster cluster =
        new LocalCluster(Files.createDirectory(folder.resolve("cluster")), 2, 256, 64)) {
      cluster.startTaskManager();
      cluster.startTaskManager();
      createTopics();
      Thread producer = produce(calls, records);
      JobClient client = submit(cluster, records);
      Random random = new Random(41);
      for (int kill = 0; kill < kills; kill++) {
        awaitMoreOutput();
        Thread.sleep(random.nextInt(1_000));
        cluster.replaceTaskManager();
        if (kill % 5 == 0) {
          awaitMoreOutput();
          broker.destroyForcibly().waitFor();
          broker = startBroker(port);
        }
      }
      produced.set(records);
      producer.join();
      client.getJobExecutionResult().get();
      Settings settings = Settings.of(4 << 20, 1e-8, 86_400_000, 0, 0, false, 128, 0, null);
      Set<Long> expected = Oracle.engine(settings, record -> key(calls, record), calls, records);
      // The broker answers a commit before readers see it, on a busy machine long before.
      List<String> committed = committed();
      for (int look = 0; committed.size() < expected.size() && look < 600; look++) {
        Thread.sleep(200);
        committed = committed();
      }
      // The number of a call is its last field.
      List<Long> output =
          committed.stream()
              .map(call -> Long.valueOf(call.substring(call.lastIndexOf(',') + 1)))
              .toList();
      assertEquals(expected, Set.copyOf(output));
      assertEquals(expected.size(), output.size());
    } finally {
      broker.destroyForcibly().waitFor();
    }
  }

  private static byte[] key(Calls calls, long record) {
    return Long.toString(calls.keyNumber(record)).getBytes(StandardCharsets.UTF_8);
  }

  private static String text(Calls calls, long record) {
    return calls.keyNumber(record) + "," + calls.time(record) + "," + record;
  }

  private JobClient submit(LocalCluster cluster, long records) throws Exception {
    StreamExecutionEnvironment env = cluster.environment(LocalCluster.restarting(folder, 500));
    env.setParallelism(2);
    KafkaExample.build(env, brokers, "calls", "calls.fresh", records);
    return env.executeAsync();
  }

  private static ProcessBuilder broker(String... arguments) {
    List<String> command = new ArrayList<>(List.of("bash", BROKER.toString()));
    command.addAll(List.of(arguments));
    return new ProcessBuilder(command);
  }

  private Process startBroker(int port) throws Exception {
    // The broker itself writes to its folder; this has what ends it before.
    Path log = folder.resolve("broker.log");
    Process broker =
        broker(folder.resolve("broker").toString(), "" + port)
            .redirectErrorStream(true)
            .redirectOutput(log.toFile())
            .start();
    Runtime.getRuntime().addShutdownHook(new Thread(broker::destroyForcibly));
    while (true) {
      try (Socket socket = new Socket()) {
        socket.connect(new InetSocketAddress("127.0.0.1", port));
        return broker;
      } catch (IOException notYet) {
        if (!broker.isAlive()) {
          throw new AssertionError("the broker ended: " + Files.readString(log));
        }
        Thread.sleep(100);
      }
    }
  }

  private void createTopics() throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", brokers))) {
      admin
          .createTopics(
              List.of(
                  new NewTopic("calls", 1, (short) 1), new NewTopic("calls.fresh", 2, (short) 1)))
          .all()
          .get();
    }
  }

  /**
   * Writes the stream as far as {@code produced} says, at a rate, each record once, however often
   * the broker restarts.
   */
  private Thread produce(Calls calls, long records) {
    Thread thread =
        new Thread(
            () -> {
              Map<String, Object> options =
                  Map.of(
                      "bootstrap.servers", brokers, "enable.idempotence", true, "linger.ms", 5);
              try (KafkaProducer<String, String> producer =
                  new KafkaProducer<>(options, new StringSerializer(), new StringSerializer())) {
                for (long record = 0; record < records; record++) {
                  if (record % (PER_SECOND / 100) == 0) {
                    Thread.sleep(10);
                  }
                  while (record >= produced.get()) {
                    Thread.sleep(10);
                  }
                  producer.send(new ProducerRecord<>("calls", text(calls, record)));
                }
              } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
              }
            });
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  /** Waits until some more of the stream, which may be written now, is committed. */
  private void awaitMoreOutput() throws InterruptedException {
    produced.addAndGet(PART);
    int before = committed().size();
    while (committed().size() < before + 1_000) {
      Thread.sleep(200);
    }
  }

  /** All committed records of the output. */
  private List<String> committed() {
    Map<String, Object> options =
        Map.of("bootstrap.servers", brokers, "isolation.level", "read_committed");
    List<String> calls = new ArrayList<>();
    try (KafkaConsumer<String, String> consumer =
        new KafkaConsumer<>(options, new StringDeserializer(), new StringDeserializer())) {
      List<TopicPartition> partitions =
          List.of(new TopicPartition("calls.fresh", 0), new TopicPartition("calls.fresh", 1));
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
      while (ends.entrySet().stream()
          .anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
        consumer.poll(Duration.ofMillis(200)).forEach(record -> calls.add(record.value()));
      }
    }
    return calls;
  }
}
