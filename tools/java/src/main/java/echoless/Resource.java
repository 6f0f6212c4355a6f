package echoless;

import java.io.OutputStream;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongConsumer;

/**
 * Something of the native library, by its number in a table there: a number that was freed is an
 * exception and not a crash.
 *
 * <p>The native methods that use it are no static ones, so that the garbage collector does not free
 * it while one of them runs.
 */
abstract sealed class Resource implements AutoCloseable
    permits AnyFilter, OrderedThread, Snapshot {
  static {
    Library.load();
  }

  private static final Cleaner CLEANER = Cleaner.create();

  private final String name;
  private final long handle;
  private final Cleaner.Cleanable cleanable;
  private volatile boolean isClosed;

  /** The thread that saves this to a stream, which is code of the program. */
  private final AtomicReference<Thread> saver = new AtomicReference<>();

  Resource(String name, long handle) {
    this.name = name;
    this.handle = handle;
    this.cleanable = CLEANER.register(this, new Free(handle));
  }

  /** What is left to do for an object that is not reachable any more, or was closed. */
  private record Free(long handle) implements Runnable {
    @Override
    public void run() {
      free(handle);
    }
  }

  /**
   * Frees the native memory; a second call has no effect. A call that another thread is in ends as
   * usual. What nobody closes is freed once the garbage collector finds it, which may be late: the
   * collector does not see native memory.
   */
  @Override
  public final void close() {
    isClosed = true;
    cleanable.clean();
  }

  final long handle() {
    if (isClosed) {
      throw EcholessException.argument(name, "closed", "an open one");
    }
    if (saver.get() == Thread.currentThread()) {
      String text = "the stream uses the " + name + " that is saved to it: expected another one";
      throw new EcholessException(Code.BUSY, text);
    }
    return handle;
  }

  /** Saves, so that a call from inside of the stream is an exception that says so. */
  void saving(LongConsumer save) {
    long handle = handle();
    if (!saver.compareAndSet(null, Thread.currentThread())) {
      throw new EcholessException(Code.BUSY, "another thread saves the " + name + ": expected one");
    }
    try {
      save.accept(handle);
    } finally {
      saver.set(null);
    }
  }

  /** Writes the state of one partition to a stream. */
  final void writePartition(int partition, OutputStream out) {
    Streams streams = Streams.of(out);
    streams.run(
        () -> {
          savePartition(handle(), partition, streams);
          return null;
        });
  }

  /** A report that reads some lines, or all of them at once if {@code mostLines} is 0. */
  final Report readReport(int mostLines) {
    long[] fields = new long[Report.FIELDS];
    reportFields(handle(), mostLines, fields);
    return Report.of(fields);
  }

  /** Runs a call with numbers; those that take none get 0. */
  final long call(Call call, long argument) {
    return number(handle(), call.ordinal(), argument);
  }

  final long judge(boolean inserts, long[] hashes, long[] ticks, int n, long[] verdicts) {
    return judgeHashes(handle(), inserts, hashes, ticks, n, verdicts);
  }

  final long judge(
      boolean inserts, byte[] packed, int[] offsets, long[] ticks, int n, long[] verdicts) {
    return judgePacked(handle(), inserts, packed, offsets, ticks, n, verdicts);
  }

  final long judge(boolean inserts, ByteBuffer hashes, int n, long[] verdicts) {
    EcholessException.present("hashes", hashes, "a direct buffer");
    if (hashes.order() != ByteOrder.nativeOrder()) {
      throw EcholessException.argument("order", hashes.order(), "ByteOrder.nativeOrder()");
    }
    int position = hashes.position();
    return judgeDirect(handle(), inserts, hashes, position, hashes.limit(), n, verdicts);
  }

  /** As C numbers the kinds of filters. */
  static final int FILTER = 1;

  static final int SHARED = 2;
  static final int ORDERED = 3;
  static final int EXACT = 5;

  static long make(int kind, String spec, Hashing hashing, int partitions) {
    EcholessException.present("hashing", hashing, "a Hashing");
    return newObject(kind, spec, hashing.seed, hashing.secret, partitions);
  }

  private static native long newObject(
      int kind, String spec, long seed, byte[] secret, int partitions);

  static native long newPartitions(
      String spec, long seed, byte[] secret, int count, int first, int last);

  static native long loadObject(
      int kind,
      Streams in,
      long seed,
      byte[] secret,
      int partitions,
      long memoryLimit,
      byte[][] bytes);

  static native long loadFolder(
      String folder, long seed, byte[] secret, long memoryLimit, byte[][] bytes);

  private static native void free(long handle);

  final native long open(long handle);

  final native long judgeHashes(
      long handle, boolean inserts, long[] hashes, long[] ticks, int n, long[] verdicts);

  final native long judgePacked(
      long handle,
      boolean inserts,
      byte[] packed,
      int[] offsets,
      long[] ticks,
      int n,
      long[] verdicts);

  private native long judgeDirect(
      long handle,
      boolean inserts,
      ByteBuffer hashes,
      int position,
      int limit,
      int n,
      long[] verdicts);

  private native long number(long handle, int call, long argument);

  final native String specText(long handle);

  private native void reportFields(long handle, int mostLines, long[] fields);

  final native void saveWhole(long handle, byte[] bytes, Streams out);

  final native void saveFolder(long handle, String folder, byte[] bytes);

  final native void saveAt(long handle, Streams out);

  private native void savePartition(long handle, int partition, Streams out);

  final native void loadPartition(long handle, int partition, Streams in);
}
