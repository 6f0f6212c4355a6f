package echoless.flink;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/**
 * The saved state of a key group:
 *
 * <pre>
 * magic, version | settings | id of the hash key | clock | part of the filter, in chunks: length, bytes ... 0
 * </pre>
 *
 * <p>The part is in chunks because only its writer knows where it ends, and a reader must not read
 * into the next key group.
 */
final class GroupState {
  private static final int MAGIC = 0x4563_686f;
  private static final int VERSION = 2;
  private static final int CHUNK = 1 << 16;

  /** The most bytes of a key group beside its lines: settings, and what a part has in front. */
  static final long MOST_HEAD = 1024;

  private GroupState() {}

  /**
   * The clock of a key group.
   *
   * @param latest its latest tick, 0 before the first
   * @param watermark the tick of the watermark, 0 before the first
   */
  record Clock(long latest, long watermark) {}

  /** Writes a part to a stream. */
  interface PartWriter {
    void write(OutputStream out) throws IOException;
  }

  /** Reads a part from a stream that ends with it. */
  interface PartReader {
    void read(InputStream in) throws IOException;
  }

  /** @param hashKeyId of {@link Settings#hashKeyId} */
  static void write(
      OutputStream to, Settings settings, long hashKeyId, Clock clock, PartWriter part)
      throws IOException {
    DataOutputStream out = new DataOutputStream(to);
    out.writeInt(MAGIC);
    out.writeInt(VERSION);
    out.writeUTF(settings.spec());
    out.writeLong(settings.memory());
    out.writeInt(settings.keyGroups());
    out.writeLong(settings.tickMillis());
    out.writeLong(settings.lateTicks());
    out.writeLong(settings.seed());
    out.writeLong(settings.skewTicks());
    out.writeLong(hashKeyId);
    out.writeLong(clock.latest());
    out.writeLong(clock.watermark());
    out.flush();
    ChunkedOutput chunks = new ChunkedOutput(out);
    part.write(chunks);
    chunks.finish();
  }

  /**
   * Reads the state of a key group and returns its clock. States of version 1 have neither a skew
   * nor a hash key nor a watermark.
   */
  static Clock read(
      InputStream from, Settings settings, long hashKeyId, PartReader part) throws IOException {
    DataInputStream in = new DataInputStream(from);
    int magic = in.readInt();
    int version = in.readInt();
    if (magic != MAGIC || version < 1 || version > VERSION) {
      throw new IllegalStateException(
          "the state is not that of a deduplication of version 1 to " + VERSION);
    }
    boolean isFirst = version == 1;
    Settings saved =
        new Settings(
            in.readUTF(),
            in.readLong(),
            in.readInt(),
            in.readLong(),
            in.readLong(),
            in.readLong(),
            isFirst ? 0 : in.readLong(),
            null);
    settings.requireEqual(saved);
    Settings.requireEqualHashKeys(isFirst ? 0 : in.readLong(), hashKeyId);
    Clock clock = new Clock(in.readLong(), isFirst ? 0 : in.readLong());
    ChunkedInput chunks = new ChunkedInput(in);
    part.read(chunks);
    if (chunks.read() >= 0) {
      throw new IllegalStateException("the state of a key group is longer than its part");
    }
    return clock;
  }

  /** Collects bytes to chunks. */
  private static final class ChunkedOutput extends OutputStream {
    private final DataOutputStream out;
    private final byte[] chunk = new byte[CHUNK];
    private int length;

    ChunkedOutput(DataOutputStream out) {
      this.out = out;
    }

    @Override
    public void write(int one) throws IOException {
      write(new byte[] {(byte) one}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int from, int count) throws IOException {
      while (count > 0) {
        int copied = Math.min(count, CHUNK - length);
        System.arraycopy(bytes, from, chunk, length, copied);
        length += copied;
        from += copied;
        count -= copied;
        if (length == CHUNK) {
          writeChunk();
        }
      }
    }

    private void writeChunk() throws IOException {
      out.writeInt(length);
      out.write(chunk, 0, length);
      length = 0;
    }

    void finish() throws IOException {
      if (length > 0) {
        writeChunk();
      }
      out.writeInt(0);
      out.flush();
    }
  }

  /** The bytes of chunks up to the empty one. */
  private static final class ChunkedInput extends InputStream {
    private final DataInputStream in;
    private final byte[] chunk = new byte[CHUNK];
    private int next;
    private int length;
    private boolean atEnd;

    ChunkedInput(DataInputStream in) {
      this.in = in;
    }

    @Override
    public int read() throws IOException {
      return fill() ? chunk[next++] & 0xff : -1;
    }

    @Override
    public int read(byte[] bytes, int from, int count) throws IOException {
      if (count == 0) {
        return 0;
      }
      if (!fill()) {
        return -1;
      }
      int copied = Math.min(count, length - next);
      System.arraycopy(chunk, next, bytes, from, copied);
      next += copied;
      return copied;
    }

    /** Reads the next chunk if this one is used up. Returns false at the end. */
    private boolean fill() throws IOException {
      if (next == length && !atEnd) {
        length = in.readInt();
        next = 0;
        atEnd = length == 0;
        if (length < 0 || length > CHUNK) {
          throw new IOException("invalid length of a chunk: " + length);
        }
        in.readFully(chunk, 0, length);
      }
      return !atEnd;
    }
  }
}
