import echoless.Filter;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;

/**
 * Drops duplicate lines in a pipe, and keeps what it has seen in a file:
 *
 * <pre>producer | java -cp echoless-0.2.0.jar Deduplicate.java seen.state | consumer</pre>
 */
public final class Deduplicate {
  /** The lines that are judged at a time. */
  private static final int BATCH = 1024;

  private Deduplicate() {}

  public static void main(String[] args) throws IOException {
    if (args.length != 1) {
      System.err.println("usage: Deduplicate STATE");
      System.exit(2);
    }
    Path state = Path.of(args[0]);
    try (Filter filter = open(state);
        BufferedReader input =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        OutputStream output = new BufferedOutputStream(System.out)) {
      List<byte[]> lines = new ArrayList<>();
      for (String line; (line = input.readLine()) != null; ) {
        lines.add(line.getBytes(StandardCharsets.UTF_8));
        // A slow stream does not wait for a batch to fill.
        if (lines.size() == BATCH || !input.ready()) {
          writeFresh(filter, lines, output);
        }
      }
      save(filter, state);
    }
  }

  private static void writeFresh(Filter filter, List<byte[]> lines, OutputStream output)
      throws IOException {
    int n = lines.size();
    int[] offsets = new int[n + 1];
    ByteArrayOutputStream packed = new ByteArrayOutputStream();
    for (int i = 0; i < n; i++) {
      packed.write(lines.get(i));
      offsets[i + 1] = packed.size();
    }
    long[] verdicts = new long[(n + 63) / 64];
    filter.observe(packed.toByteArray(), offsets, n, verdicts);
    for (int i = 0; i < n; i++) {
      if ((verdicts[i / 64] >>> i % 64 & 1) == 0) {
        output.write(lines.get(i));
        output.write('\n');
      }
    }
    output.flush();
    lines.clear();
  }

  private static Filter open(Path state) throws IOException {
    if (!Files.exists(state)) {
      return Filter.of("fingerprint:fpr=1e-8,memory=64MiB");
    }
    try (InputStream in = new BufferedInputStream(Files.newInputStream(state))) {
      return Filter.load(in);
    }
  }

  /** The file has the old state or the new one at any time. */
  private static void save(Filter filter, Path state) throws IOException {
    // A link stays one, and nothing but a file is replaced.
    Path file = Files.exists(state) ? state.toRealPath() : state;
    if (Files.exists(file) && !Files.isRegularFile(file)) {
      throw new IOException(file + " is no file");
    }
    Path next = Path.of(file + ".next");
    try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(next))) {
      filter.save(out);
    }
    Files.move(next, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
  }
}
