package echoless;

import java.io.OutputStream;

/** The partitions of a task at one point of its stream; see {@link Partitions#snapshot}. */
public final class Snapshot extends Resource {
  Snapshot(long handle) {
    super("snapshot", handle);
  }

  /**
   * As {@link Partitions#save}, from any thread.
   *
   * @throws java.io.UncheckedIOException if the stream fails
   */
  public void save(int partition, OutputStream out) {
    writePartition(partition, out);
  }
}
