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
  private static long reserved;

  private NativeMemory() {}

  /** Reserves bytes until {@link #release}. Without a declared size nothing is checked. */
  static synchronized void reserve(long bytes, ReadableConfig config) {
    Optional<MemorySize> declared = config.getOptional(TaskManagerOptions.TASK_OFF_HEAP_MEMORY);
    if (declared.isPresent() && bytes > declared.get().getBytes() - reserved) {
      throw new IllegalStateException(
          String.format(
              "invalid %s: %s: expected at least %s, for filters of %s in this task manager, and one "
                  + "of %s, each with its copy of a checkpoint",
              TaskManagerOptions.TASK_OFF_HEAP_MEMORY.key(),
              declared.get(),
              new MemorySize(reserved + bytes),
              new MemorySize(reserved / 2),
              new MemorySize(bytes / 2)));
    }
    reserved += bytes;
  }

  static synchronized void release(long bytes) {
    reserved -= bytes;
  }
}
