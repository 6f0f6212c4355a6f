package echoless;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.regex.Pattern;

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

  /** Control characters, and those that change the direction of the text behind them. */
  private static final Pattern ACTS =
      Pattern.compile("[\\p{Cc}\\p{Zl}\\p{Zp}\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]");

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
      copyAndLoad(from);
      return null;
    } catch (UnsatisfiedLinkError error) {
      return error;
    }
  }

  /** Loads a copy of a file, or of a resource of the jar. */
  static void copyAndLoad(String from) {
    try {
      Path copy = Files.createTempFile("echoless", ".so");
      try {
        copy(from, copy);
        System.load(copy.toAbsolutePath().toString());
      } finally {
        Files.deleteIfExists(copy);
      }
    } catch (IOException | InvalidPathException | UnsatisfiedLinkError error) {
      String text =
          "cannot load "
              + from
              + " by way of "
              + System.getProperty("java.io.tmpdir")
              + " (java.io.tmpdir, from which programs must be allowed to run): "
              + error;
      // On one line, as all texts of the engine.
      UnsatisfiedLinkError failure = new UnsatisfiedLinkError(ACTS.matcher(text).replaceAll("?"));
      failure.initCause(error);
      throw failure;
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
