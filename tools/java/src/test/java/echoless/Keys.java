package echoless;

import java.nio.charset.StandardCharsets;

/** Keys for tests. */
final class Keys {
  private Keys() {}

  /** Hashes that are uniform: a mix of 64 bits (splitmix64). */
  static long mix(long number) {
    long mixed = number + 0x9e3779b97f4a7c15L;
    mixed = (mixed ^ mixed >>> 30) * 0xbf58476d1ce4e5b9L;
    mixed = (mixed ^ mixed >>> 27) * 0x94d049bb133111ebL;
    return mixed ^ mixed >>> 31;
  }

  static long[] hashes(int from, int count) {
    long[] hashes = new long[count];
    for (int i = 0; i < count; i++) {
      hashes[i] = mix(from + i);
    }
    return hashes;
  }

  static long[] words(int count) {
    return new long[(count + 63) / 64];
  }

  static boolean isDuplicate(long[] verdicts, int index) {
    return (verdicts[index / 64] >>> index % 64 & 1) == 1;
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
