package echoless;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;

/**
 * The streams of one native call. What a stream throws is kept until the call has ended, so that no
 * exception is pending in the native library.
 */
final class Streams {
  private final InputStream input;
  private final OutputStream output;
  private Throwable thrown;

  private Streams(InputStream input, OutputStream output) {
    this.input = input;
    this.output = output;
  }

  static Streams of(InputStream input) {
    return new Streams(EcholessException.present("in", input, "a stream"), null);
  }

  static Streams of(OutputStream output) {
    return new Streams(null, EcholessException.present("out", output, "a stream"));
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

  /** Runs a native call. What the stream threw comes before what the engine says of it. */
  <T> T run(java.util.function.Supplier<T> call) {
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
