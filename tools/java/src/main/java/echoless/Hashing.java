package echoless;

/**
 * How keys become hashes. Filters find the keys of each other, and restore the states of each
 * other, only with equal hashing.
 */
public final class Hashing {
  /** The fast hash with seed 0, as in all other languages. */
  public static final Hashing DEFAULT = seeded(0);

  final long seed;

  /** Null, or 16 bytes. */
  final byte[] secret;

  private Hashing(long seed, byte[] secret) {
    this.seed = seed;
    this.secret = secret;
  }

  /** The fast hash with a seed. Anyone who knows the seed could choose keys that collide. */
  public static Hashing seeded(long seed) {
    return new Hashing(seed, null);
  }

  /**
   * A slower hash for which nobody without the 16 secret bytes can choose keys that collide.
   *
   * @throws EcholessException if there are more or fewer bytes
   */
  public static Hashing secret(byte[] secret) {
    EcholessException.present("secret", secret, "16 bytes");
    if (secret.length != 16) {
      throw EcholessException.argument("secret", secret.length + " bytes", "16 bytes");
    }
    return new Hashing(0, secret.clone());
  }
}
