package echoless;

import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A filter without errors: keys that its filter may have seen are compared with the digests, of 128
 * bits, of all keys. It has no window and never forgets a key. A key takes 17 to 40 bytes of memory
 * until the first {@link #save(Path, byte[])}, and from then on 16.1 in its folder.
 *
 * <p>Keys are bytes: hashes are an exception. One thread at a time may use it; a call while another
 * one runs is an exception.
 */
public final class ExactFilter extends AnyFilter implements Judge {
  private final byte[] savedBytes;

  private ExactFilter(long handle, byte[] savedBytes) {
    super(handle);
    this.savedBytes = savedBytes;
  }

  /**
   * Builds a filter without errors from the specification of one in lines, such as {@code
   * fingerprint:fpr=1e-8,memory=64MiB}, with {@link Hashing#DEFAULT}. Give it 10 bytes for each key:
   * once it is full, all keys are looked up.
   */
  public static ExactFilter of(String spec) {
    return of(spec, Hashing.DEFAULT);
  }

  /** As {@link #of(String)}, with other hashes. */
  public static ExactFilter of(String spec, Hashing hashing) {
    return new ExactFilter(make(EXACT, spec, hashing, 1), new byte[0]);
  }

  /**
   * Opens a folder with {@link Hashing#DEFAULT}, with a filter of any memory.
   *
   * @see #load(Path, Hashing, long)
   */
  public static ExactFilter load(Path folder) {
    return load(folder, Hashing.DEFAULT, Long.MAX_VALUE);
  }

  /**
   * Opens a folder as it was last saved: what was observed since is gone. A filter of more memory
   * than {@code memoryLimit} is rejected before it is built.
   *
   * @throws EcholessException with {@link Code#BUSY} if another filter or process uses the folder
   */
  public static ExactFilter load(Path folder, Hashing hashing, long memoryLimit) {
    EcholessException.present("folder", folder, "a path");
    EcholessException.present("hashing", hashing, "a Hashing");
    byte[][] bytes = new byte[1][];
    String path = folder.toString();
    long handle = loadFolder(path, hashing.seed, hashing.secret, memoryLimit, bytes);
    return new ExactFilter(handle, bytes[0]);
  }

  /** Whether a filter was saved in a folder, so that {@link #load(Path)} opens it. */
  public static boolean isSaved(Path folder) {
    // The lock has a note of the first save.
    return folder.resolve("lock").toFile().length() > 0 || Files.exists(folder.resolve("filter"));
  }

  /** Whether each key would be a duplicate now. Changes nothing. */
  public long contains(byte[] packed, int[] offsets, int n, long[] verdicts) {
    return judge(false, packed, offsets, null, n, verdicts);
  }

  /** Saves without bytes of the caller. */
  public void save(Path folder) {
    save(folder, new byte[0]);
  }

  /**
   * Saves the filter with bytes of the caller, such as a position in a stream, in a folder, which is
   * made if necessary. The first call moves the digests of all keys there; later ones, of the same
   * folder, write what is new, and the filter. After a kill or a power cut, the folder is as it was
   * last saved. The secret of the digests is in it, and that of the hashing is not. If it fails, so
   * do all later calls.
   */
  public void save(Path folder, byte[] bytes) {
    EcholessException.present("folder", folder, "a path");
    saveFolder(handle(), folder.toString(), bytes);
  }

  /** The bytes that were saved with the folder that this filter was loaded from; none otherwise. */
  public byte[] savedBytes() {
    return savedBytes.clone();
  }

  /** Removes all keys of a filter that was never saved. */
  public void clear() {
    call(Call.CLEAR, 0);
  }
}
