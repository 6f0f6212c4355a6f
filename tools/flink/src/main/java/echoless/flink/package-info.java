/**
 * Duplicate detection as an operator of Apache Flink: {@link echoless.flink.Deduplicate} is the entry.
 *
 * <pre>
 * record -> key bytes -> key hash -> partition = key group -> lines of the filter -> verdict
 * </pre>
 *
 * <p>A key group of Flink is a partition of the filter, a range of its lines. So Flink's routing of
 * records, checkpoints and rescaling divide the filter where it divides anyway.
 */
package echoless.flink;
