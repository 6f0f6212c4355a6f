package echoless;

/** An error of the engine: its text is one line that says what, where and what is allowed. */
public final class EcholessException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** What programs compare. */
  private final Code code;

  EcholessException(Code code, String text) {
    super(text);
    this.code = code;
  }

  /** For the native library. */
  EcholessException(int number, String text) {
    this(Code.of(number), text);
  }

  /** An argument that is not allowed, in the form of the engine. */
  static EcholessException argument(String name, Object value, String allowed) {
    String text = "invalid " + name + "=" + value + ": expected " + allowed;
    return new EcholessException(Code.INVALID_ARGUMENT, text);
  }

  /** Checks that an argument is there. */
  static <T> T present(String name, T value, String allowed) {
    if (value == null) {
      throw argument(name, null, allowed);
    }
    return value;
  }

  /** What programs compare. */
  public Code code() {
    return code;
  }
}
