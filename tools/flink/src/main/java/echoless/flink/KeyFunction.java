package echoless.flink;

import java.io.Serializable;

/**
 * Tells the bytes that identify a record. Records of equal bytes are duplicates.
 *
 * <p>It is called twice for a record, by the task that sends it and by the one that judges it, and
 * must return the same bytes both times. The array is read before the next call, so it may be
 * reused.
 *
 * @param <T> the records of the stream
 */
@FunctionalInterface
public interface KeyFunction<T> extends Serializable {
  /** The key, or null for a record that has none; see {@link Deduplicate#unjudged}. */
  byte[] key(T record) throws Exception;
}
