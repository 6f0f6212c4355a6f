package echoless.flink;

import java.util.Optional;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.configuration.TaskManagerOptions;

/**
 * The memory of filters in this process, against what the task manager was told to leave for it.
 *
 * <p>Filters lie outside of the Java heap. Flink does not see them, and a container that exceeds its
 * memory is killed without a word, so a task that does not fit fails when it opens.
 */
final class NativeMemory {
  /** A property of the system, since each job may have this class in a class loader of its own. */
  private static final String RESERVED = "echoless.flink.reserved";

  private NativeMemory() {}

  /** Reserves bytes until {@link #release}. Without a declared size nothing is checked. */
  static void reserve(long bytes, ReadableConfig config) {
    Optional<MemorySize> declared = config.getOptional(TaskManagerOptions.TASK_OFF_HEAP_MEMORY);
    synchronized (System.getProperties()) {
      long reserved = Long.getLong(RESERVED, 0);
      if (declared.isPresent() && bytes > declared.get().getBytes() - reserved) {
        throw new IllegalStateException(
            String.format(
                "invalid %s: %s: expected at least %s, for filters of %s in this task manager, and "
                    + "one of %s, each with its copy of a checkpoint",
                TaskManagerOptions.TASK_OFF_HEAP_MEMORY.key(),
                declared.get(),
                new MemorySize(reserved + bytes),
                new MemorySize(reserved / 2),
                new MemorySize(bytes / 2)));
      }
      System.setProperty(RESERVED, Long.toString(reserved + bytes));
    }
  }

  static void release(long bytes) {
    synchronized (System.getProperties()) {
      System.setProperty(RESERVED, Long.toString(Long.getLong(RESERVED, 0) - bytes));
    }
  }
}
