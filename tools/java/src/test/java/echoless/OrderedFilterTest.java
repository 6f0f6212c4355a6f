package echoless;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Threads of an ordered filter, whose verdicts are those of one. */
class OrderedFilterTest {
  private static final String SPEC = "fingerprint:fpr=1e-8,memory=1MiB";
  private static final int BATCHES = 200;
  private static final int SIZE = 150;

  private final Object input = new Object();
  private int next;

  private static long[] batch(int number) {
    return Keys.hashes(number * SIZE / 2, SIZE);
  }

  /** Observes batches of the input in its order, until there is none. */
  private void observeAll(OrderedThread thread, long[][] verdicts) {
    while (true) {
      int number;
      synchronized (input) {
        number = next++;
        if (number >= BATCHES) {
          return;
        }
        thread.take();
      }
      verdicts[number] = Keys.words(SIZE);
      thread.observe(batch(number), SIZE, verdicts[number]);
    }
  }

  @Test
  void verdictsAreThoseOfOneThread() throws Exception {
    try (Filter one = Filter.of(SPEC);
        OrderedFilter ordered = OrderedFilter.of(SPEC, 2)) {
      long[][] verdicts = new long[BATCHES][];
      List<Thread> threads = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        OrderedThread access = ordered.thread();
        Thread thread = new Thread(() -> observeAll(access, verdicts));
        thread.start();
        threads.add(thread);
      }
      for (Thread thread : threads) {
        thread.join();
      }
      long[] expected = Keys.words(SIZE);
      for (int number = 0; number < BATCHES; number++) {
        one.observe(batch(number), SIZE, expected);
        assertArrayEquals(expected, verdicts[number], "batch " + number);
      }
      assertEquals(one.report().fresh(), ordered.report().fresh());
      assertEquals(one.memory(), ordered.memory());
      assertEquals(1 << 20, ordered.memory());
      assertEquals(one.spec(), ordered.spec());
    }
  }

  @Test
  void tickets() {
    OrderedFilter ordered = OrderedFilter.of("clocked:window=600,memory=1MiB", 2);
    try (OrderedThread one = ordered.thread();
        OrderedThread two = ordered.thread()) {
      one.take();
      assertFalse(two.await(1));
      one.leave();
      assertTrue(two.await(60_000));
      ordered.close();
      long[] verdicts = new long[1];
      assertEquals(0, two.observe(new long[] {7}, new long[] {100}, 1, verdicts));
      assertEquals(1, one.observe(new long[] {7}, new long[] {700}, 1, verdicts));
      byte[] key = Keys.bytes("call 17");
      int[] offsets = {0, key.length};
      assertEquals(0, one.observe(key, offsets, new long[] {700}, 1, verdicts));
      assertEquals(1, one.observe(key, offsets, 1, verdicts));
    }
    assertThrows(EcholessException.class, ordered::thread);
    assertThrows(EcholessException.class, () -> OrderedFilter.of(SPEC, 0));
    assertThrows(EcholessException.class, () -> OrderedFilter.of(SPEC, -1));
    assertThrows(EcholessException.class, () -> OrderedFilter.of(SPEC, null, 1));
  }

  @Test
  void aStateIsOfOnePoint() {
    try (OrderedFilter ordered = OrderedFilter.of(SPEC, 2);
        OrderedThread thread = ordered.thread()) {
      long[] keys = Keys.hashes(0, 50);
      long[] verdicts = new long[1];
      thread.observe(keys, 50, verdicts);
      List<String> called = new ArrayList<>();
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      ordered.save(
          out,
          () -> called.add("before"),
          () -> {
            called.add("position");
            EcholessException error =
                assertThrows(
                    EcholessException.class, () -> thread.observe(keys, 1, new long[1]));
            assertEquals(Code.BUSY, error.code());
            return Keys.bytes("line 50");
          });
      assertEquals(List.of("before", "position"), called);
      ByteArrayInputStream in = new ByteArrayInputStream(out.toByteArray());
      try (OrderedFilter again =
              OrderedFilter.load(in, Hashing.DEFAULT, 3, Long.MAX_VALUE);
          OrderedThread access = again.thread()) {
        assertArrayEquals(Keys.bytes("line 50"), again.savedBytes());
        assertEquals(50, access.observe(keys, 50, verdicts));
      }
      in.reset();
      try (Filter whole = Filter.load(in)) {
        assertEquals(50, whole.observe(keys, 50, verdicts));
      }
      // What a function throws ends the save; the filter goes on.
      IllegalStateException thrown = new IllegalStateException();
      Runnable wrong =
          () -> {
            throw thrown;
          };
      OutputStream nowhere = OutputStream.nullOutputStream();
      for (Runnable save :
          List.<Runnable>of(
              () -> ordered.save(nowhere, wrong, () -> new byte[0]),
              () ->
                  ordered.save(
                      nowhere,
                      () -> {},
                      () -> {
                        throw thrown;
                      }))) {
        assertEquals(thrown, assertThrows(IllegalStateException.class, save::run));
      }
      assertThrows(
          EcholessException.class, () -> ordered.save(nowhere, () -> {}, () -> null));
      assertThrows(EcholessException.class, () -> ordered.save(nowhere, null, () -> new byte[0]));
      ordered.save(nowhere, Keys.bytes("line 51"));
      assertEquals(50, thread.observe(keys, 50, verdicts));
    }
  }
}
