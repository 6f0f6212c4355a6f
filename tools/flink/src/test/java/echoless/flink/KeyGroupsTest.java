package echoless.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import echoless.Hasher;
import echoless.Partitions;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class KeyGroupsTest {
  private static final Calls CALLS = new Calls(5000, 1, 0);

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 7, 128, 4096, 32768})
  void flinkAssignsEachNumberToItsKeyGroup(int keyGroups) {
    int[] numbers = KeyGroups.numbersOf(keyGroups);
    assertEquals(keyGroups, numbers.length);
    for (int group = 0; group < keyGroups; group++) {
      assertEquals(group, KeyGroupRangeAssignment.assignToKeyGroup(numbers[group], keyGroups));
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 128})
  void flinkSendsARecordToTheTaskThatOwnsItsPartition(int parallelism) throws Exception {
    Settings settings = Settings.of(1 << 20, 1e-8, 0, 0, 0, false, 128, 0, null);
    KeyGroups<Long> selector = new KeyGroups<>(CALLS::key, settings);
    int[] records = new int[parallelism];
    for (long record = 0; record < 5000; record++) {
      int task =
          KeyGroupRangeAssignment.assignKeyToParallelOperator(
              selector.getKey(record), 128, parallelism);
      long hash = Hasher.hash(CALLS.key(record), settings.hashing());
      int group = Partitions.partitionOf(hash, 128);
      assertTrue(
          KeyGroupRangeAssignment.computeKeyGroupRangeForOperatorIndex(128, parallelism, task)
              .contains(group));
      records[task]++;
    }
    for (int count : records) {
      assertTrue(count > 0);
    }
  }

  @Test
  void failuresOfTheKeyFunctionSaySo() {
    Settings settings = Settings.of(1 << 20, 1e-8, 0, 0, 0, false, 128, 0, null);
    KeyGroups<Long> failing = new KeyGroups<>(record -> new byte[(int) (1 / record)], settings);
    Exception failure = assertThrows(IllegalStateException.class, () -> failing.getKey(0L));
    assertEquals("the key function of the deduplication failed", failure.getMessage());
    assertEquals(ArithmeticException.class, failure.getCause().getClass());
  }

  /** A record without a key goes to one task, in any order of records. */
  @Test
  void recordsWithoutAKeyHaveOneKeyGroup() throws Exception {
    Settings settings = Settings.of(1 << 20, 1e-8, 0, 0, 0, false, 128, 0, null);
    KeyGroups<Long> without = new KeyGroups<>(record -> null, settings);
    assertEquals(without.getKey(0L), without.getKey(1L));
  }
}
