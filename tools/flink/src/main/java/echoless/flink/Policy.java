package echoless.flink;

import java.io.Serializable;
import org.apache.flink.util.OutputTag;

/**
 * What happens to the records of one kind.
 *
 * @param fate the same for every kind
 * @param tag where records go that are set aside; null otherwise
 * @param <T> the records of the stream
 */
record Policy<T>(Fate fate, OutputTag<T> tag) implements Serializable {
  enum Fate {
    JUDGE,
    PASS,
    ASIDE,
    FAIL
  }

  /** The policy of a constant of {@link Late}, {@link Ahead} or {@link Unjudged}. */
  static <T> Policy<T> of(Enum<?> named, OutputTag<T> tag) {
    return new Policy<>(Fate.valueOf(named.name()), tag);
  }
}
