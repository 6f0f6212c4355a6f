package echoless;

/** What went wrong, as a number that is the same in every version and language. */
public enum Code {
  /** An argument is null, too short, or outside of its range. */
  INVALID_ARGUMENT,
  /** A specification or an option has a value that is not allowed. */
  INVALID_SPEC,
  /** The memory could not be allocated. */
  OUT_OF_MEMORY,
  /** A stream failed. */
  IO,
  /** A saved state is damaged, truncated, or no state. */
  INVALID_STATE,
  /** A saved state is of another filter, another partition or other key hashes. */
  STATE_MISMATCH,
  /** A thread could not be started or pinned. */
  THREAD,
  /** A partition is lost: its filter panicked. */
  PARTITION_LOST,
  /** The filter was shut down. */
  DISCONNECTED,
  /** The call needs a port without batches in flight. */
  IN_FLIGHT,
  /** The process is a fork of the one that built the filter. */
  FORKED,
  /** The time of the call is over. Nothing was judged. */
  TIMED_OUT,
  /** Another thread uses the filter, which one thread at a time may use. */
  BUSY,
  /** The filter cannot do this, such as save its lines if it has none. */
  UNSUPPORTED,
  /** The library panicked: a defect. The filter rejects all later calls. */
  PANICKED;

  private static final Code[] CODES = values();

  /** The number. */
  public int number() {
    return ordinal() + 1;
  }

  static Code of(int number) {
    return CODES[number - 1];
  }
}
