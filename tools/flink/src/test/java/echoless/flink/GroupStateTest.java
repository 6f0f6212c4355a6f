package echoless.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import org.junit.jupiter.api.Test;

class GroupStateTest {
  private static final Settings MINUTE =
      Settings.of(1 << 20, 1e-8, 60_000, 0, 0, false, 16, 0, null);
  private static final byte[] PART = {1, 2, 3};

  private static GroupState.Clock read(byte[] state, Settings settings, long hashKeyId)
      throws Exception {
    return GroupState.read(
        new ByteArrayInputStream(state),
        settings,
        hashKeyId,
        part -> assertArrayEquals(PART, part.readAllBytes()));
  }

  @Test
  void whatIsWrittenIsRead() throws Exception {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    GroupState.Clock clock = new GroupState.Clock(17, 16);
    GroupState.write(out, MINUTE, 7, clock, part -> part.write(PART));
    assertEquals(clock, read(out.toByteArray(), MINUTE, 7));
    assertThrows(IllegalStateException.class, () -> read(out.toByteArray(), MINUTE, 0));
  }

  /** As it was before there were a skew, a hash key and watermarks. */
  @Test
  void statesOfVersion1AreRead() throws Exception {
    byte[] state = ofVersion(1);
    assertEquals(new GroupState.Clock(17, 0), read(state, MINUTE, 0));
    Settings two = Settings.of(1 << 20, 1e-8, 120_000, 0, 0, false, 16, 0, null);
    Exception failure =
        assertThrows(IllegalStateException.class, () -> read(state, two, 0));
    assertEquals(
        "the state was saved with another window: it has PT1M, the job has PT2M",
        failure.getMessage());
    failure = assertThrows(IllegalStateException.class, () -> read(ofVersion(3), MINUTE, 0));
    assertEquals(
        "the state is not that of a deduplication of version 1 to 2", failure.getMessage());
  }

  private static byte[] ofVersion(int version) throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeInt(0x4563_686f);
    out.writeInt(version);
    out.writeUTF("fingerprint:fpr=1.0E-8,replacement=fifo,window=3000,memory=1048576");
    out.writeLong(1 << 20);
    out.writeInt(16);
    for (long number : new long[] {20, 3000, 0, 17}) {
      out.writeLong(number);
    }
    out.writeInt(PART.length);
    out.write(PART);
    out.writeInt(0);
    return bytes.toByteArray();
  }
}
