package echoless.flink;

import java.io.File;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.streaming.api.environment.RemoteStreamEnvironment;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * A job manager and task managers, each a process with the class path of this one. So jobs need no
 * jar: their classes are on the class path of the cluster.
 */
final class LocalCluster implements AutoCloseable {
  private static final String JOB_MANAGER =
      "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint";
  private static final String TASK_MANAGER =
      "org.apache.flink.runtime.taskexecutor.TaskManagerRunner";
  private static final String LOOPBACK = "127.0.0.1";

  private static final int FRAMEWORK_MEGABYTES = 256;

  private final Path folder;
  private final int heapMegabytes;
  private final int restPort;
  private Process jobManager;
  private final List<Process> taskManagers = new ArrayList<>();

  /**
   * @param folder for configuration and logs
   * @param heapMegabytes of the tasks of a task manager
   * @param offHeapMegabytes what a task manager leaves for filters
   */
  LocalCluster(Path folder, int slots, int heapMegabytes, int offHeapMegabytes)
      throws IOException {
    this.folder = folder;
    this.heapMegabytes = heapMegabytes;
    restPort = freePorts(2);
    Map<String, Object> options = new TreeMap<>();
    options.put("jobmanager.rpc.address", LOOPBACK);
    options.put("jobmanager.rpc.port", restPort + 1);
    options.put("rest.address", LOOPBACK);
    options.put("rest.bind-address", LOOPBACK);
    options.put("rest.port", restPort);
    options.put("taskmanager.host", LOOPBACK);
    options.put("taskmanager.numberOfTaskSlots", slots);
    // What Flink's scripts derive from the size of a process.
    options.put("taskmanager.cpu.cores", 1);
    options.put("taskmanager.memory.framework.heap.size", FRAMEWORK_MEGABYTES + "mb");
    options.put("taskmanager.memory.framework.off-heap.size", "128mb");
    options.put("taskmanager.memory.task.heap.size", heapMegabytes + "mb");
    options.put("taskmanager.memory.task.off-heap.size", offHeapMegabytes + "mb");
    options.put("taskmanager.memory.managed.size", "512mb");
    options.put("taskmanager.memory.network.min", "64mb");
    options.put("taskmanager.memory.network.max", "64mb");
    options.put("taskmanager.memory.jvm-metaspace.size", "256mb");
    options.put("taskmanager.memory.jvm-overhead.min", "192mb");
    options.put("taskmanager.memory.jvm-overhead.max", "192mb");
    options.put("metrics.fetcher.update-interval", "500ms");
    options.put("heartbeat.interval", 500);
    options.put("heartbeat.timeout", 10_000);
    options.put("io.tmp.dirs", folder);
    StringBuilder text = new StringBuilder();
    options.forEach((key, value) -> text.append(key).append(": ").append(value).append('\n'));
    Files.writeString(folder.resolve("config.yaml"), text);
    // Processes outlive a parent that is killed by a signal.
    Runtime.getRuntime().addShutdownHook(new Thread(this::killAll));
    jobManager = start(JOB_MANAGER, 512, "jobmanager");
  }

  /**
   * The first of so many free ports in a row, at least now. They are below those that the system
   * gives to connections: one of these may be free only until a server restarts.
   */
  static int freePorts(int count) throws IOException {
    IOException taken = null;
    for (int attempt = 0; attempt < 1_000; attempt++) {
      int first = ThreadLocalRandom.current().nextInt(15_000, 32_000);
      try {
        for (int port = first; port < first + count; port++) {
          new ServerSocket(port).close();
        }
        return first;
      } catch (IOException failure) {
        taken = failure;
      }
    }
    throw taken;
  }

  private Process start(String main, int megabytes, String log) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("-Xmx" + megabytes + "m");
    command.add("-Dtest.log=" + System.getProperty("test.log", "OFF"));
    for (String opened : List.of("java.util", "java.lang", "java.time")) {
      command.add("--add-opens=java.base/" + opened + "=ALL-UNNAMED");
    }
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main));
    command.addAll(List.of("--configDir", folder.toString()));
    File output = folder.resolve(log + ".log").toFile();
    return new ProcessBuilder(command)
        .redirectErrorStream(true)
        .redirectOutput(ProcessBuilder.Redirect.appendTo(output))
        .start();
  }

  /** Starts a task manager and returns its process. */
  Process startTaskManager() throws IOException {
    Process process =
        start(
            TASK_MANAGER,
            heapMegabytes + FRAMEWORK_MEGABYTES,
            "taskmanager-" + taskManagers.size());
    taskManagers.add(process);
    return process;
  }

  /** Kills the oldest task manager with signal 9. */
  void killTaskManager() throws InterruptedException {
    Process killed = taskManagers.stream().filter(Process::isAlive).findFirst().orElseThrow();
    killed.destroyForcibly().waitFor();
  }

  /** Kills the oldest task manager with signal 9 and starts another. */
  void replaceTaskManager() throws IOException, InterruptedException {
    killTaskManager();
    startTaskManager();
  }

  /** Checkpoints below a folder, so many milliseconds apart, and restarts without end. */
  static Configuration restarting(Path folder, long intervalMillis) {
    Configuration config = new Configuration();
    config.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofMillis(intervalMillis));
    config.set(
        CheckpointingOptions.CHECKPOINTS_DIRECTORY,
        folder.resolve("checkpoints").toUri().toString());
    config.set(CheckpointingOptions.CHECKPOINT_STORAGE, "filesystem");
    config.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
    config.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, Integer.MAX_VALUE);
    config.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofMillis(200));
    return config;
  }

  StreamExecutionEnvironment environment(Configuration config) {
    return new RemoteStreamEnvironment(LOOPBACK, restPort, config);
  }

  int restPort() {
    return restPort;
  }

  private void killAll() {
    taskManagers.forEach(Process::destroyForcibly);
    if (jobManager != null) {
      jobManager.destroyForcibly();
    }
  }

  @Override
  public void close() throws InterruptedException {
    killAll();
    for (Process taskManager : taskManagers) {
      taskManager.waitFor();
    }
    jobManager.waitFor();
  }
}
