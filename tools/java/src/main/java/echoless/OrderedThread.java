package echoless;

/** The access of one thread to an {@link OrderedFilter}. One thread at a time may use it. */
public final class OrderedThread extends Resource implements TimedJudge {
  OrderedThread(long handle) {
    super("thread", handle);
  }

  /**
   * Takes the next ticket: the batch of the next {@code observe} of this thread applies after those
   * of all tickets that were taken before. Usually under the lock of the input, so that both have
   * one order. Does not block. Without effect if the thread holds a ticket.
   *
   * <p>All later tickets wait until the batch has passed, so a thread that holds a ticket must
   * observe, or {@link #leave}.
   */
  public void take() {
    call(Call.TAKE, 0);
  }

  /** Leaves out the ticket that the thread holds, if it holds one. */
  public void leave() {
    call(Call.LEAVE, 0);
  }

  /**
   * Waits at most so many milliseconds for the turn of the ticket that the thread holds, which it
   * takes if it holds none. If the time is over, that is false, and the thread still holds its
   * ticket.
   */
  public boolean await(long milliseconds) {
    try {
      call(Call.WAIT, Math.max(0, milliseconds));
      return true;
    } catch (EcholessException error) {
      if (error.code() == Code.TIMED_OUT) {
        return false;
      }
      throw error;
    }
  }
}
