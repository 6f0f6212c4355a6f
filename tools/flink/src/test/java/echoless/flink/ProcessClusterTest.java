package echoless.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A job on a cluster of processes, whose task managers are killed with signal 9. */
class ProcessClusterTest {
  private static final int PER_CHECKPOINT = 6_000;

  @TempDir Path folder;

  @Test
  void killedProcessesLoseAndDoubleNothing() throws Exception {
    int kills = Integer.getInteger("echoless.kills", 2);
    // Two checkpoints commit the output that a kill waits for, and four pass until it.
    long records = 20L * PER_CHECKPOINT * (kills + 1);
    Calls calls = new Calls(records / 3, 10, 3_000);
    CallsJob job = CallsJob.fast(calls, records, Duration.ofMinutes(10)).perCheckpoint(PER_CHECKPOINT);
    Path out = folder.resolve("out");
    Random random = new Random(41);
    try (LocalCluster cluster =
        new LocalCluster(Files.createDirectory(folder.resolve("cluster")), 2, 256, 64)) {
      cluster.startTaskManager();
      cluster.startTaskManager();
      StreamExecutionEnvironment env = cluster.environment(LocalCluster.restarting(folder, 300));
      job.build(env, 3, calls::key, out);
      JobClient client = env.executeAsync();
      for (int kill = 0; kill < kills; kill++) {
        // Each kill meets a job that has gone on since the last one.
        int before = CallsJob.read(out).size();
        while (CallsJob.read(out).size() < before + 1_000 && !isFinished(client)) {
          Thread.sleep(50);
        }
        Thread.sleep(random.nextInt(1_000));
        assertFalse(isFinished(client), "the stream is too short for its kills");
        cluster.replaceTaskManager();
      }
      client.getJobExecutionResult().get();
    }
    List<Long> output = CallsJob.read(out);
    Set<Long> expected = Oracle.engine(job.settings(), calls, records);
    assertEquals(expected, Set.copyOf(output));
    assertEquals(expected.size(), output.size());
  }

  private static boolean isFinished(JobClient client) throws Exception {
    return client.getJobStatus().get().isGloballyTerminalState();
  }
}
