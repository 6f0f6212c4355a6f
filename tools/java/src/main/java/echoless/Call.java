package echoless;

/** The calls with numbers. Generated: UPDATE_CALLS=1 cargo test -p echoless-java. */
enum Call {
  ADVANCE,
  CLEAR,
  MEMORY_BYTES,
  LINES,
  TAKE,
  LEAVE,
  WAIT
}
