package echoless;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** What a program passes is repeated in no text as it is. */
class ErrorTextTest {
  private static final String NASTY = "a\nb\r\u001b[2J\u202ec\u2028d\u009b\0";
  private static final Pattern ACTS =
      Pattern.compile("[\\p{Cc}\\p{Zl}\\p{Zp}\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]");

  private static void isOneLine(Executable call) {
    String text = assertThrows(Throwable.class, call).getMessage();
    assertTrue(!ACTS.matcher(text).find(), () -> text.replaceAll(ACTS.pattern(), "?"));
    assertTrue(text.length() < 10_000, () -> text.length() + " characters");
  }

  @Test
  void textsAreOneLine() {
    for (String nasty : new String[] {NASTY, "\ud800" + NASTY, NASTY + "x".repeat(1 << 20)}) {
      isOneLine(() -> Filter.of(nasty));
      isOneLine(() -> Filter.of("fingerprint:" + nasty + "=1"));
      isOneLine(() -> Filter.of("fingerprint:memory=" + nasty));
      isOneLine(() -> SharedFilter.of(nasty));
      isOneLine(() -> Partitions.open(nasty, Hashing.DEFAULT, 2, 0, 1));
    }
    isOneLine(() -> Library.copyAndLoad("/nowhere/" + NASTY.replace("\0", "")));
    isOneLine(() -> Library.copyAndLoad(NASTY));
  }
}
