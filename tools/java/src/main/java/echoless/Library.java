package echoless;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Loads the native library, once for each class loader.
 *
 * <p>A JVM loads a file into one class loader only, and the linker knows a file by its inode. So
 * each class loader gets a copy of its own, which needs no name once it is loaded.
 */
final class Library {
  /** The file to load in place of that of the jar: a property of the JVM, or of the environment. */
  private static final String PROPERTY = "echoless.library";

  private static final String VARIABLE = "ECHOLESS_LIBRARY";

  /** The result of the only attempt: null, or why it failed. */
  private static final UnsatisfiedLinkError FAILURE = tryLoad();

  private Library() {}

  static void load() {
    if (FAILURE != null) {
      throw FAILURE;
    }
  }

  private static UnsatisfiedLinkError tryLoad() {
    String from = System.getProperty(PROPERTY, System.getenv(VARIABLE));
    if (from == null || from.isEmpty()) {
      from = resource();
    }
    try {
      Path copy = Files.createTempFile("echoless", ".so");
      try {
        copy(from, copy);
        System.load(copy.toAbsolutePath().toString());
      } finally {
        Files.deleteIfExists(copy);
      }
      return null;
    } catch (IOException | UnsatisfiedLinkError error) {
      String text =
          "cannot load "
              + from
              + " by way of "
              + System.getProperty("java.io.tmpdir")
              + " (java.io.tmpdir, from which programs must be allowed to run): "
              + error;
      UnsatisfiedLinkError failure = new UnsatisfiedLinkError(text);
      failure.initCause(error);
      return failure;
    }
  }

  /** The name in the jar, such as {@code /echoless/native/linux-x86_64/libecholess_java.so}. */
  private static String resource() {
    String system = System.getProperty("os.name").toLowerCase(java.util.Locale.ROOT);
    String processor = System.getProperty("os.arch");
    String known = processor.equals("amd64") ? "x86_64" : processor;
    return "/echoless/native/" + system + "-" + known + "/" + System.mapLibraryName("echoless_java");
  }

  private static void copy(String from, Path to) throws IOException {
    try (InputStream resource =
        from.startsWith("/echoless/native/")
            ? Library.class.getResourceAsStream(from)
            : Files.newInputStream(Path.of(from))) {
      if (resource == null) {
        throw new IOException(
            "the jar has no library for this platform: build it with cargo before the jar, or set "
                + PROPERTY);
      }
      Files.copy(resource, to, java.nio.file.StandardCopyOption.REPLACE_EXISTING);
    }
  }
}
