package echoless.flink;

import java.io.Serializable;
import java.nio.ByteBuffer;

/**
 * A stream of numbered records whose keys and times follow from their numbers, so that an oracle
 * needs no copy of the stream.
 *
 * @param distinct the number of keys
 * @param gapMillis the time between two records
 * @param disorderMillis by how much a record may be older than the one before
 */
record Calls(long distinct, long gapMillis, long disorderMillis) implements Serializable {
  private static final long START = 1_700_000_000_000L;

  long keyNumber(long record) {
    return Math.floorMod(mix(record), distinct);
  }

  byte[] key(long record) {
    return ByteBuffer.allocate(16).putLong(mix(keyNumber(record))).putLong(0).array();
  }

  long time(long record) {
    long disorder = disorderMillis == 0 ? 0 : Math.floorMod(mix(~record), disorderMillis);
    return START + record * gapMillis - disorder;
  }

  private static long mix(long value) {
    long mixed = (value + 1) * 0x9e3779b97f4a7c15L;
    mixed = (mixed ^ mixed >>> 32) * 0xd6e8feb86659fd93L;
    return mixed ^ mixed >>> 32;
  }
}
