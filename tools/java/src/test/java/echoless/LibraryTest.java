package echoless;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;

/** The jobs of one cluster each have a class loader, and each loads the library. */
class LibraryTest {
  private static URLClassLoader loader() {
    URL[] classes = {Filter.class.getProtectionDomain().getCodeSource().getLocation()};
    return new URLClassLoader(classes, ClassLoader.getPlatformClassLoader());
  }

  /** Observes a key twice with a filter of the class loader, and returns the duplicates. */
  private static long use(ClassLoader loader) throws ReflectiveOperationException {
    Class<?> filters = loader.loadClass("echoless.Filter");
    assertNotSame(Filter.class, filters);
    Object filter = filters.getMethod("of", String.class).invoke(null, "fingerprint:memory=1MiB");
    long[] hashes = {Keys.mix(1), Keys.mix(1)};
    Object count =
        filters
            .getMethod("observe", long[].class, int.class, long[].class)
            .invoke(filter, hashes, 2, new long[1]);
    AutoCloseable.class.getMethod("close").invoke(filter);
    return (Long) count;
  }

  @Test
  void twoClassLoadersUseItAtTheSameTime() throws Exception {
    try (URLClassLoader one = loader();
        URLClassLoader other = loader();
        Filter own = Filter.of("fingerprint:memory=1MiB")) {
      assertEquals(1, use(one));
      assertEquals(1, use(other));
      assertEquals(1, use(one));
      assertEquals(0, own.observe(new long[] {Keys.mix(1)}, 1, new long[1]));
    }
  }

  /** A job that has ended leaves nothing behind that keeps its class loader. */
  @Test
  void aClassLoaderCanGo() throws Exception {
    URLClassLoader loader = loader();
    assertEquals(1, use(loader));
    loader.close();
    WeakReference<ClassLoader> gone = new WeakReference<>(loader);
    loader = null;
    for (int round = 0; round < 200 && gone.get() != null; round++) {
      System.gc();
      Thread.sleep(10);
    }
    assertNull(gone.get());
  }

  @Test
  void theJarHasTheLicences() throws Exception {
    try (URLClassLoader loader = loader()) {
      for (String name : new String[] {"LICENSE-MIT", "LICENSE-APACHE"}) {
        URL text = loader.findResource("META-INF/" + name);
        assertTrue(new String(text.openStream().readAllBytes(), UTF_8).length() > 1000, name);
      }
    }
  }

  @Test
  void noCopyIsLeft() throws Exception {
    assertEquals(1, use(loader()));
    java.nio.file.Path folder = java.nio.file.Path.of(System.getProperty("java.io.tmpdir"));
    String maps = java.nio.file.Files.readString(java.nio.file.Path.of("/proc/self/maps"));
    java.util.regex.Matcher matcher =
        java.util.regex.Pattern.compile("/(echoless[0-9]+\\.so)").matcher(maps);
    while (matcher.find()) {
      assertFalse(java.nio.file.Files.exists(folder.resolve(matcher.group(1))));
    }
  }

  /** Flink closes the class loader of a job that ends, whose threads may still be in a call. */
  @Test
  void aClosedContextClassLoaderIsNoObstacle() throws Exception {
    ClassLoader closed =
        new ClassLoader(null) {
          @Override
          protected Class<?> loadClass(String name, boolean resolve) {
            throw new IllegalStateException("closed");
          }
        };
    FutureTask<Void> calls =
        new FutureTask<>(
            () -> {
              Thread.currentThread().setContextClassLoader(closed);
              OutputStream full =
                  new OutputStream() {
                    @Override
                    public void write(int one) throws IOException {
                      throw new IOException("full");
                    }
                  };
              try (Filter filter = Filter.of("fingerprint:memory=64KiB");
                  SharedFilter shared = SharedFilter.of("row4x16:memory=64KiB");
                  Partitions parts =
                      Partitions.open(
                          "fingerprint:memory=64KiB", Hashing.DEFAULT, 2, 0, 1)) {
                assertThrows(EcholessException.class, () -> filter.observe(new long[1], 2, null));
                assertThrows(EcholessException.class, () -> shared.observe(new long[1], 2, null));
                assertThrows(EcholessException.class, () -> parts.load(0, nothing()));
                assertThrows(EcholessException.class, () -> Filter.of("no filter"));
                assertThrows(EcholessException.class, () -> Filter.load(nothing()));
                assertThrows(UncheckedIOException.class, () -> filter.save(full));
                assertThrows(UncheckedIOException.class, () -> parts.save(0, full));
                ByteArrayOutputStream saved = new ByteArrayOutputStream();
                filter.save(saved);
                Filter.load(new ByteArrayInputStream(saved.toByteArray())).close();
                assertEquals(0, filter.report().observed());
                assertEquals(0, parts.report().observed());
              }
              return null;
            });
    new Thread(calls).start();
    calls.get();
  }

  private static InputStream nothing() {
    return InputStream.nullInputStream();
  }
}
