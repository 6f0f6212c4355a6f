package echoless;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;

/** A shared filter is used while it is saved: nobody waits for the stream. */
class SharedSaveTest {
  private final SharedFilter shared = SharedFilter.of("row4x16:memory=1MiB");
  private final long[] keys = Keys.hashes(0, 1000);

  /** A stream that calls the filter itself, and then waits for a thread that does. */
  private final class Using extends ByteArrayOutputStream {
    @Override
    public void write(byte[] bytes, int from, int count) {
      observe(keys);
      FutureTask<Void> other =
          new FutureTask<>(
              () -> {
                assertEquals(keys.length, observe(keys));
                assertTrue(shared.contains(keys, keys.length, Keys.words(keys.length)) > 0);
                assertTrue(shared.report().fresh() > 0);
                shared.save(OutputStream.nullOutputStream());
                return null;
              });
      new Thread(other).start();
      try {
        other.get();
      } catch (InterruptedException error) {
        throw new AssertionError(error);
      } catch (ExecutionException error) {
        throw new AssertionError(error.getCause());
      }
      super.write(bytes, from, count);
    }
  }

  private long observe(long[] hashes) {
    return shared.observe(hashes, hashes.length, Keys.words(hashes.length));
  }

  @Test
  void theStreamUsesTheFilterThatIsSavedToIt() {
    long[] before = Keys.hashes(5000, 1000);
    observe(before);
    Using out = new Using();
    shared.save(out, new byte[] {7});
    SharedFilter loaded = SharedFilter.load(new ByteArrayInputStream(out.toByteArray()));
    assertEquals(7, loaded.savedBytes()[0]);
    // What was observed before the save is in the state.
    assertEquals(1000, loaded.observe(before, 1000, Keys.words(1000)));
  }

  @Test
  void aStreamThatFailsAndUsesTheFilter() {
    OutputStream broken =
        new OutputStream() {
          @Override
          public void write(int unused) throws IOException {
            observe(keys);
            throw new IOException("unplugged");
          }
        };
    assertThrows(UncheckedIOException.class, () -> shared.save(broken));
    assertEquals(keys.length, observe(keys));
    shared.save(OutputStream.nullOutputStream());
  }
}
