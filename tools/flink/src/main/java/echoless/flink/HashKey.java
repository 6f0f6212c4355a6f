package echoless.flink;

import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;

/**
 * The secret of the key hash: 16 bytes. Nobody without it can craft records that are taken for
 * duplicates of others.
 *
 * <p>Each task that sends or judges records reads it once, so all of them must read the same bytes.
 * Neither the plan of the job nor a message has them.
 */
@FunctionalInterface
public interface HashKey extends Serializable {
  /** The 16 bytes. */
  byte[] read() throws Exception;

  /**
   * The secret in a file of every task manager: 32 hexadecimal digits, as {@code openssl rand -hex
   * 16} writes them, and as {@code echoless dedup --hash-key} reads them.
   */
  static HashKey ofFile(String path) {
    return () -> {
      String digits = Files.readString(Path.of(path)).strip();
      if (!digits.matches("[0-9a-fA-F]{32}")) {
        throw new IllegalArgumentException(
            "invalid hashKey in "
                + path
                + ": expected 32 hexadecimal digits (16 bytes) and nothing else");
      }
      return HexFormat.of().parseHex(digits);
    };
  }

  /** The secret itself. It is part of the serialized job, which Flink may store with its state. */
  static HashKey of(byte[] secret) {
    byte[] copy = secret.clone();
    if (copy.length != 16) {
      throw new IllegalArgumentException(
          "invalid hashKey of " + copy.length + " bytes: expected 16 bytes");
    }
    return () -> copy;
  }
}
