package echoless;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.util.function.Supplier;

/**
 * The streams of one native call. What a stream throws is kept until the call has ended, so that no
 * exception is pending in the native library.
 */
final class Streams {
  private final InputStream input;
  private final OutputStream output;
  private final Runnable before;
  private final Supplier<byte[]> position;
  private Throwable thrown;

  private Streams(
      InputStream input, OutputStream output, Runnable before, Supplier<byte[]> position) {
    this.input = input;
    this.output = output;
    this.before = before;
    this.position = position;
  }

  static Streams of(InputStream input) {
    return new Streams(EcholessException.present("in", input, "a stream"), null, null, null);
  }

  static Streams of(OutputStream output) {
    return of(output, () -> {}, () -> new byte[0]);
  }

  /** With what a program does at the point where the state ends. */
  static Streams of(OutputStream output, Runnable before, Supplier<byte[]> position) {
    return new Streams(
        null,
        EcholessException.present("out", output, "a stream"),
        EcholessException.present("before", before, "a function"),
        EcholessException.present("position", position, "a function"));
  }

  /** Called by the native library: writes the first bytes, and tells whether that worked. */
  boolean write(byte[] bytes, int count) {
    try {
      output.write(bytes, 0, count);
      return true;
    } catch (Throwable thrown) {
      this.thrown = thrown;
      return false;
    }
  }

  /** Called by the native library: the number of bytes, 0 at the end, -1 if the stream failed. */
  int read(byte[] bytes, int most) {
    try {
      return Math.max(0, input.read(bytes, 0, most));
    } catch (Throwable thrown) {
      this.thrown = thrown;
      return -1;
    }
  }

  /** Called by the native library: tells whether that worked. */
  boolean before() {
    try {
      before.run();
      return true;
    } catch (Throwable thrown) {
      this.thrown = thrown;
      return false;
    }
  }

  /** Called by the native library: the bytes of the program, null if that failed. */
  byte[] position() {
    try {
      return EcholessException.present("position", position.get(), "an array");
    } catch (Throwable thrown) {
      this.thrown = thrown;
      return null;
    }
  }

  /** Runs a native call. What the stream threw comes before what the engine says of it. */
  <T> T run(Supplier<T> call) {
    try {
      return call.get();
    } catch (EcholessException error) {
      if (thrown instanceof IOException io) {
        throw new UncheckedIOException(io);
      }
      if (thrown instanceof RuntimeException exception) {
        throw exception;
      }
      if (thrown instanceof Error fatal) {
        throw fatal;
      }
      throw error;
    }
  }
}
