package echoless;

/** What filters of all kinds have. */
abstract sealed class AnyFilter extends Resource permits SavedFilter, ExactFilter, Partitions {
  AnyFilter(long handle) {
    super("filter", handle);
  }

  /** Counters and error estimates. This may read the whole memory of the filter. */
  public Report report() {
    return readReport(0);
  }

  /** The specification of the whole filter. */
  public String spec() {
    return specText(handle());
  }

  /** The memory of the filter's state, in bytes. */
  public long memory() {
    return call(Call.MEMORY_BYTES, 0);
  }
}
