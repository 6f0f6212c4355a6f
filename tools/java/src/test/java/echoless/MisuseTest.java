package echoless;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Every wrong call is an exception, and the filter is as it was. */
class MisuseTest {
  private static final String SPEC = "fingerprint:fpr=1e-8,memory=1MiB";
  private final Filter filter = Filter.of(SPEC);
  private final long[] verdicts = new long[16];

  private static void rejects(Code code, String text, Executable call) {
    EcholessException error = assertThrows(EcholessException.class, call);
    assertEquals(text, error.getMessage());
    assertEquals(code, error.code());
  }

  private static void rejects(String text, Executable call) {
    rejects(Code.INVALID_ARGUMENT, text, call);
  }

  @AfterEach
  void nothingWasObserved() {
    assertEquals(0, filter.report().observed());
    filter.close();
  }

  @Test
  void specifications() {
    assertThrows(EcholessException.class, () -> Filter.of("no filter"));
    rejects("invalid spec=null: expected a text", () -> Filter.of(null));
    EcholessException error =
        assertThrows(EcholessException.class, () -> Filter.of("fingerprint:fpr=2,memory=1MiB"));
    assertEquals(Code.INVALID_SPEC, error.code());
    assertTrue(error.getMessage().startsWith("invalid fpr=2: expected"), error.getMessage());
    error = assertThrows(EcholessException.class, () -> Filter.of("fingerprint:memory=256GiB"));
    assertEquals(Code.OUT_OF_MEMORY, error.code());
    // Each partition alone would fit.
    String large = "fingerprint:memory=256GiB";
    error =
        assertThrows(
            EcholessException.class,
            () -> Partitions.open(large, Hashing.DEFAULT, 256, 0, 255));
    assertEquals(Code.OUT_OF_MEMORY, error.code());
    rejects("invalid hashing=null: expected a Hashing", () -> Filter.of(SPEC, null));
    rejects("invalid secret=3 bytes: expected 16 bytes", () -> Hashing.secret(new byte[3]));
    rejects("invalid secret=null: expected 16 bytes", () -> Hashing.secret(null));
    assertThrows(EcholessException.class, () -> SharedFilter.of("fingerprint:fpr=1e-8"));
  }

  @Test
  void arrays() {
    long[] two = new long[2];
    rejects("invalid hashes=null: expected an array", () -> filter.observe((long[]) null, 0, two));
    rejects("invalid hashes=2 values: expected 3 or more", () -> filter.observe(two, 3, verdicts));
    rejects("invalid n=-1: expected 0 or more", () -> filter.observe(two, -1, verdicts));
    int least = Integer.MIN_VALUE;
    rejects("invalid n=-2147483648: expected 0 or more", () -> filter.observe(two, least, two));
    rejects("invalid verdicts=null: expected an array", () -> filter.observe(two, 2, null));
    rejects(
        "invalid verdicts=2 values: expected 3 or more",
        () -> filter.observe(new long[129], 129, two));
    rejects("invalid ticks=null: expected an array", () -> filter.observe(two, null, 2, verdicts));
    rejects(
        "invalid tick=-1: expected 0 or more",
        () -> filter.observe(two, new long[] {0, -1}, 2, verdicts));
    rejects("invalid tick=-1: expected 0 or more", () -> filter.advanceTo(-1));
    rejects("invalid count=0: expected 1 or more", () -> Partitions.partitionOf(1, 0));
    rejects(
        "invalid ticks=1 values: expected 2 or more",
        () -> filter.observe(two, new long[1], 2, verdicts));
    rejects("invalid hashes=2 values: expected 3 or more", () -> filter.contains(two, 3, verdicts));
    assertEquals(0, filter.observe(two, 0, new long[0]));
  }

  @Test
  void packedKeys() {
    byte[] packed = new byte[10];
    int[] good = {0, 5, 10};
    rejects(
        "invalid packed=null: expected an array",
        () -> filter.observe((byte[]) null, good, 2, verdicts));
    rejects(
        "invalid offsets=null: expected an array", () -> filter.observe(packed, null, 2, verdicts));
    rejects(
        "invalid offsets=3 values: expected 4 or more",
        () -> filter.observe(packed, good, 3, verdicts));
    rejects(
        "invalid offsets=0 values: expected 1 or more",
        () -> filter.observe(packed, new int[0], 0, verdicts));
    for (int[] bad : new int[][] {{0, 5, 4}, {0, 5, 11}, {0, 5, -1}}) {
      rejects(
          "invalid offset=number 2: expected ascending offsets in 10 bytes",
          () -> filter.observe(packed, bad, 2, verdicts));
    }
    rejects(
        "invalid offset=number 0: expected ascending offsets in 10 bytes",
        () -> filter.contains(packed, new int[] {-5, 0, 1}, 2, verdicts));
    long[] two = new long[2];
    rejects(
        "invalid hashes=2 values: expected 3 or more",
        () -> Hasher.hash(packed, new int[4], 3, Hashing.DEFAULT, two));
    rejects("invalid hashes=null: expected an array", () -> Hasher.hash(two, 2, Hashing.DEFAULT, null));
    rejects("invalid n=-2: expected 0 or more", () -> Hasher.hash(two, -2, Hashing.DEFAULT, two));
    rejects("invalid key=null: expected an array", () -> Hasher.hash(null));
    rejects("invalid hashing=null: expected a Hashing", () -> Hasher.hash(packed, null));
  }

  @Test
  void buffers() {
    ByteBuffer heap = ByteBuffer.allocate(64).order(ByteOrder.nativeOrder());
    rejects(
        "invalid hashes=a buffer in the heap: expected a direct one, ByteBuffer.allocateDirect",
        () -> filter.observe(heap, 1, verdicts));
    ByteBuffer direct = ByteBuffer.allocateDirect(64);
    rejects(
        "invalid order=" + direct.order() + ": expected ByteOrder.nativeOrder()",
        () -> filter.observe(direct, 1, verdicts));
    direct.order(ByteOrder.nativeOrder());
    rejects(
        "invalid hashes=64 bytes: expected 72 or more from the position on",
        () -> filter.observe(direct, 9, verdicts));
    direct.position(16);
    rejects(
        "invalid hashes=48 bytes: expected 17179869176 or more from the position on",
        () -> filter.observe(direct, Integer.MAX_VALUE, new long[1 << 25]));
    direct.position(4);
    assertThrows(EcholessException.class, () -> filter.observe(direct, 1, verdicts));
    rejects("invalid n=-1: expected 0 or more", () -> filter.observe(direct, -1, verdicts));
    rejects(
        "invalid hashes=null: expected a direct buffer",
        () -> filter.observe((ByteBuffer) null, 1, verdicts));
  }

  @Test
  void closedOnes() {
    Filter closed = Filter.of(SPEC);
    closed.close();
    closed.close();
    String text = "invalid filter=closed: expected an open one";
    long[] two = new long[2];
    rejects(text, () -> closed.observe(two, 2, verdicts));
    rejects(text, () -> closed.contains(two, 2, verdicts));
    rejects(text, closed::report);
    rejects(text, closed::spec);
    rejects(text, closed::memory);
    rejects(text, closed::clear);
    rejects(text, () -> closed.advanceTo(1));
    rejects(text, () -> closed.save(OutputStream.nullOutputStream()));
    // The number itself, as if another thread closed the filter at this very moment.
    EcholessException error =
        assertThrows(EcholessException.class, () -> filter.judgeHashes(99, true, two, null, 2, two));
    assertEquals("invalid filter=0x63: expected one that is not freed", error.getMessage());
    assertThrows(EcholessException.class, () -> filter.judgeHashes(-1, true, two, null, 2, two));
    assertThrows(EcholessException.class, () -> filter.judgeHashes(0, true, two, null, 2, two));
  }

  /** A call inside of another one, and one of a second thread, while a filter saves itself. */
  @Test
  void twoCallsAtOnce() throws Exception {
    String text = "another thread uses the filter: expected one thread at a time";
    String inside = "the stream uses the filter that is saved to it: expected another one";
    long[] one = new long[1];
    CountDownLatch isInside = new CountDownLatch(1);
    CountDownLatch mayEnd = new CountDownLatch(1);
    OutputStream waiting =
        new OutputStream() {
          @Override
          public void write(int unused) {}

          @Override
          public void write(byte[] bytes, int from, int count) {
            rejects(Code.BUSY, inside, () -> filter.observe(one, 1, one));
            isInside.countDown();
            try {
              mayEnd.await();
            } catch (InterruptedException error) {
              throw new AssertionError(error);
            }
          }
        };
    FutureTask<Void> saver = new FutureTask<>(() -> filter.save(waiting), null);
    new Thread(saver).start();
    assertTrue(isInside.await(1, TimeUnit.MINUTES), "the stream was not reached");
    rejects(Code.BUSY, text, () -> filter.observe(one, 1, one));
    rejects(Code.BUSY, text, filter::report);
    rejects(
        Code.BUSY, "another thread saves the filter: expected one", () -> filter.save(waiting));
    mayEnd.countDown();
    saver.get();
  }

  /** Calls of several threads, which close the filter under each other. */
  @Test
  void threadsThatDoNotCare() throws Exception {
    for (int round = 0; round < 50; round++) {
      Filter victim = Filter.of(SPEC);
      List<FutureTask<Void>> threads = new ArrayList<>();
      for (int t = 0; t < 3; t++) {
        boolean closes = t == 0;
        threads.add(
            new FutureTask<>(
                () -> {
                  long[] hashes = Keys.hashes(0, 2000);
                  long[] words = Keys.words(2000);
                  for (int i = 0; i < 50; i++) {
                    try {
                      if (closes && i == 25) {
                        victim.close();
                      }
                      victim.observe(hashes, 2000, words);
                    } catch (EcholessException error) {
                      Code code = error.code();
                      assertTrue(code == Code.BUSY || code == Code.INVALID_ARGUMENT, error::toString);
                    }
                  }
                  return null;
                }));
        new Thread(threads.get(t)).start();
      }
      for (FutureTask<Void> thread : threads) {
        // What failed in the thread fails here.
        thread.get();
      }
      victim.close();
    }
  }

  @Test
  void streams() {
    IOException broken = new IOException("broken");
    OutputStream full =
        new OutputStream() {
          @Override
          public void write(int unused) throws IOException {
            throw broken;
          }
        };
    UncheckedIOException error =
        assertThrows(UncheckedIOException.class, () -> filter.save(full));
    assertSame(broken, error.getCause());
    InputStream failing =
        new InputStream() {
          @Override
          public int read() throws IOException {
            throw broken;
          }
        };
    assertSame(broken, assertThrows(UncheckedIOException.class, () -> Filter.load(failing)).getCause());
    InputStream lying =
        new InputStream() {
          @Override
          public int read() {
            return 0;
          }

          @Override
          public int read(byte[] bytes, int from, int count) {
            return count + 1;
          }
        };
    assertEquals(
        Code.IO, assertThrows(EcholessException.class, () -> Filter.load(lying)).code());
    IllegalStateException thrown = new IllegalStateException("of the stream");
    InputStream throwing =
        new InputStream() {
          @Override
          public int read() {
            throw thrown;
          }
        };
    assertSame(thrown, assertThrows(IllegalStateException.class, () -> Filter.load(throwing)));
    rejects("invalid out=null: expected a stream", () -> filter.save(null));
    rejects("invalid in=null: expected a stream", () -> Filter.load(null));
    rejects(
        "invalid bytes=null: expected an array",
        () -> filter.save(OutputStream.nullOutputStream(), null));
  }

  @Test
  void states() {
    assertEquals(Code.INVALID_STATE, codeOf(new byte[0], Hashing.DEFAULT, Long.MAX_VALUE));
    assertEquals(Code.INVALID_STATE, codeOf(new byte[100], Hashing.DEFAULT, Long.MAX_VALUE));
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    filter.save(out);
    byte[] state = out.toByteArray();
    assertEquals(Code.STATE_MISMATCH, codeOf(state, Hashing.seeded(1), Long.MAX_VALUE));
    assertEquals(Code.INVALID_SPEC, codeOf(state, Hashing.DEFAULT, 1000));
    assertEquals(Code.INVALID_ARGUMENT, codeOf(state, Hashing.DEFAULT, -1));
    byte[] damaged = state.clone();
    damaged[state.length / 2] ^= 1;
    assertEquals(Code.INVALID_STATE, codeOf(damaged, Hashing.DEFAULT, Long.MAX_VALUE));
    // A state of the other kind, and a whole one in part.
    try (SharedFilter shared = SharedFilter.of("row4x16:memory=1MiB")) {
      out.reset();
      shared.save(out);
    }
    byte[] ofShared = out.toByteArray();
    assertEquals(Code.STATE_MISMATCH, codeOf(ofShared, Hashing.DEFAULT, Long.MAX_VALUE));
    assertEquals(Code.STATE_MISMATCH, codeOfShared(state, Hashing.DEFAULT, Long.MAX_VALUE));
    assertEquals(Code.STATE_MISMATCH, codeOfShared(ofShared, Hashing.seeded(1), Long.MAX_VALUE));
    assertEquals(Code.INVALID_SPEC, codeOfShared(ofShared, Hashing.DEFAULT, 1000));
    for (int length : new int[] {0, 100, ofShared.length / 2, ofShared.length - 1}) {
      byte[] torn = Arrays.copyOf(ofShared, length);
      assertEquals(Code.INVALID_STATE, codeOfShared(torn, Hashing.DEFAULT, Long.MAX_VALUE));
    }
    byte[] longer = Arrays.copyOf(ofShared, ofShared.length + 1);
    assertEquals(Code.INVALID_STATE, codeOfShared(longer, Hashing.DEFAULT, Long.MAX_VALUE));
  }

  private static Code codeOf(byte[] state, Hashing hashing, long limit) {
    InputStream in = new ByteArrayInputStream(state);
    return assertThrows(EcholessException.class, () -> Filter.load(in, hashing, limit)).code();
  }

  private static Code codeOfShared(byte[] state, Hashing hashing, long limit) {
    InputStream in = new ByteArrayInputStream(state);
    return assertThrows(EcholessException.class, () -> SharedFilter.load(in, hashing, limit)).code();
  }

  @Test
  void codesHaveTheNumbersOfTheEngine() {
    for (Code code : Code.values()) {
      assertSame(code, Code.of(code.number()));
    }
    assertEquals(15, Code.PANICKED.number());
    assertEquals(1, Code.INVALID_ARGUMENT.number());
  }
}
