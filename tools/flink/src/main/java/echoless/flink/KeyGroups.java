package echoless.flink;

import echoless.Hasher;
import echoless.Hashing;
import echoless.Partitions;
import java.util.Arrays;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;

/**
 * Routes a record to the key group that is the partition of its key.
 *
 * <p>Flink computes the key group of a record from the hash code of its key. So the key of Flink is
 * a number that Flink assigns to the key group which the filter's division demands:
 *
 * <pre>
 * partition    0  1  2  3 ...     from the key hash of the record
 * number       4  0  9  2 ...     the smallest one that Flink assigns to this key group
 * </pre>
 */
final class KeyGroups<T> implements KeySelector<T, Integer> {
  private final KeyFunction<T> keys;
  private final Settings settings;
  private transient int[] numbers;
  private transient Hashing hashing;

  KeyGroups(KeyFunction<T> keys, Settings settings) {
    this.keys = keys;
    this.settings = settings;
  }

  @Override
  public Integer getKey(T record) throws Exception {
    if (numbers == null) {
      numbers = numbersOf(settings.keyGroups());
      hashing = settings.hashing();
    }
    byte[] key = keyOf(keys, record);
    if (key == null) {
      // Always the same: Flink routes a record again when a job is rescaled.
      return numbers[0];
    }
    long hash = Hasher.hash(key, hashing);
    return numbers[Partitions.partitionOf(hash, settings.keyGroups())];
  }

  /** The bytes of a record's key; null if it has none. A failure tells that it is the caller's function that failed. */
  static <T> byte[] keyOf(KeyFunction<T> keys, T record) {
    try {
      return keys.key(record);
    } catch (Exception failure) {
      throw new IllegalStateException("the key function of the deduplication failed", failure);
    }
  }

  /** For each key group the smallest number that Flink assigns to it. */
  static int[] numbersOf(int keyGroups) {
    int[] numbers = new int[keyGroups];
    Arrays.fill(numbers, -1);
    int found = 0;
    for (int number = 0; found < keyGroups; number++) {
      int group = KeyGroupRangeAssignment.assignToKeyGroup(number, keyGroups);
      if (numbers[group] < 0) {
        numbers[group] = number;
        found++;
      }
    }
    return numbers;
  }
}
