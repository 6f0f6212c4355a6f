//! What every method has in common: failures as exceptions, arguments as values.

use echoless::KeyHasher;
use echoless_foreign::{Code, Failure, catch};
use jni::errors::ThrowRuntimeExAndDefault;
use jni::objects::{JByteArray, JPrimitiveArray, JString, JThrowable, TypeArray};
use jni::{Env, EnvUnowned, JValue, jni_sig, jni_str};

/// Runs a method. A failure, or a panic, becomes a pending exception.
pub(crate) fn call<'local, T: Default>(
    mut env: EnvUnowned<'local>,
    run: impl FnOnce(&mut Env<'local>) -> Result<T, Failure>,
) -> T {
    let outcome = env.with_env(|env| -> jni::errors::Result<T> {
        catch(|| run(env)).or_else(|failure| throw(env, &failure).map(|()| T::default()))
    });
    // An exception that is pending stays, and if none could be made, this makes one.
    outcome.resolve::<ThrowRuntimeExAndDefault>()
}

fn throw(env: &mut Env<'_>, failure: &Failure) -> jni::errors::Result<()> {
    let text = env.new_string(&failure.text)?;
    let class = env.find_class(jni_str!("echoless/EcholessException"))?;
    let arguments = [
        JValue::Int(failure.code.number()),
        JValue::Object(text.as_ref()),
    ];
    let exception = env.new_object(class, jni_sig!("(ILjava/lang/String;)V"), &arguments)?;
    // Not `cast_local`, which looks the class up by the context class loader of the thread. That of
    // a job that ends may be closed; then it looks up the class of what the loader throws, by the
    // same loader, without end.
    // SAFETY: the reference is that of an `EcholessException`, which is a `Throwable`.
    let exception = unsafe { JThrowable::from_raw(env, exception.into_raw()) };
    env.throw(exception)
}

/// An error of the interface itself.
pub(crate) fn of_java(error: jni::errors::Error) -> Failure {
    Failure::new(Code::Panicked, format!("a call into Java failed: {error}"))
}

/// A number of things, which Java has as an `int`.
pub(crate) fn count(name: &'static str, value: i32) -> Result<usize, Failure> {
    usize::try_from(value).map_err(|_| Failure::argument(name, value, "0 or more"))
}

/// A number that is not negative.
pub(crate) fn whole(name: &'static str, value: i64) -> Result<u64, Failure> {
    u64::try_from(value).map_err(|_| Failure::argument(name, value, "0 or more"))
}

/// A text.
pub(crate) fn text(
    env: &Env<'_>,
    name: &'static str,
    text: &JString<'_>,
) -> Result<String, Failure> {
    if text.is_null() {
        return Err(Failure::argument(name, "null", "a text"));
    }
    text.try_to_string(env).map_err(of_java)
}

/// The length of an array.
pub(crate) fn length<T: TypeArray>(
    env: &Env<'_>,
    name: &'static str,
    array: &JPrimitiveArray<'_, T>,
) -> Result<usize, Failure> {
    if array.is_null() {
        return Err(Failure::argument(name, "null", "an array"));
    }
    array.len(env).map_err(of_java)
}

/// Checks that an array has a value for each of `needed` things. It may have more, so that a
/// program can use one array for batches of any length.
pub(crate) fn check_length<T: TypeArray>(
    env: &Env<'_>,
    name: &'static str,
    array: &JPrimitiveArray<'_, T>,
    needed: usize,
) -> Result<(), Failure> {
    let length = length(env, name, array)?;
    if length < needed {
        let value = format!("{length} values");
        return Err(Failure::argument(name, value, format!("{needed} or more")));
    }
    Ok(())
}

/// All bytes of an array.
pub(crate) fn bytes(
    env: &Env<'_>,
    name: &'static str,
    array: &JByteArray<'_>,
) -> Result<Vec<u8>, Failure> {
    length(env, name, array)?;
    env.convert_byte_array(array).map_err(of_java)
}

/// The hasher of a seed, or of 16 secret bytes if there are some.
pub(crate) fn hasher(
    env: &Env<'_>,
    seed: i64,
    secret: &JByteArray<'_>,
) -> Result<KeyHasher, Failure> {
    if secret.is_null() {
        return Ok(KeyHasher::seeded(seed.cast_unsigned()));
    }
    let secret = bytes(env, "secret", secret)?;
    let secret = secret.try_into().map_err(|secret: Vec<u8>| {
        Failure::argument("secret", format!("{} bytes", secret.len()), "16 bytes")
    })?;
    Ok(KeyHasher::keyed(secret))
}
