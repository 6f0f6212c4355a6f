//! Streams of Java, to which states are written and from which they are read, and what a program
//! does where a state ends.
//!
//! The other side, `echoless.Streams`, keeps what a stream throws, and throws it again once the
//! native method has returned. No exception is pending while the library runs.

use std::cell::RefCell;
use std::io::{self, Read, Write};

use echoless_foreign::{Code, Failure};
use jni::objects::{JByteArray, JObject};
use jni::{Env, JValue, JValueOwned, jni_sig, jni_str};

use crate::call::{bytes, of_java};

/// The bytes that are passed to Java at a time.
const PIECE: usize = 1 << 16;

/// The environment, which a stream and the callbacks of one call have in turn.
type Shared<'a, 'local> = RefCell<&'a mut Env<'local>>;

/// A stream of Java, with an array for the bytes that pass.
pub(crate) struct Stream<'a, 'b, 'local> {
    env: &'b Shared<'a, 'local>,
    stream: &'b JObject<'local>,
    piece: JByteArray<'local>,
}

impl<'a, 'b, 'local> Stream<'a, 'b, 'local> {
    /// # Errors
    /// [`io::Error`] if Java has no memory.
    pub(crate) fn new(
        env: &'b Shared<'a, 'local>,
        stream: &'b JObject<'local>,
    ) -> Result<Self, io::Error> {
        let piece = env.borrow_mut().new_byte_array(PIECE);
        let piece = piece.map_err(io::Error::other)?;
        Ok(Self { env, stream, piece })
    }
}

impl Write for Stream<'_, '_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let env = &mut **self.env.borrow_mut();
        let bytes = &bytes[..bytes.len().min(PIECE)];
        let of_java: Vec<i8> = bytes.iter().map(|byte| byte.cast_signed()).collect();
        let copied = self.piece.set_region(env, 0, &of_java);
        copied.map_err(io::Error::other)?;
        let arguments = [
            JValue::Object(self.piece.as_ref()),
            JValue::Int(bytes.len() as i32),
        ];
        let (name, types) = (jni_str!("write"), jni_sig!("([BI)Z"));
        let written = env.call_method(self.stream, name, types, &arguments);
        match written.and_then(JValueOwned::z) {
            Ok(true) => Ok(bytes.len()),
            Ok(false) => Err(io::Error::other("the stream threw an exception")),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Stream<'_, '_, '_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let env = &mut **self.env.borrow_mut();
        let most = bytes.len().min(PIECE);
        let arguments = [
            JValue::Object(self.piece.as_ref()),
            JValue::Int(most as i32),
        ];
        let (name, types) = (jni_str!("read"), jni_sig!("([BI)I"));
        let read = env.call_method(self.stream, name, types, &arguments);
        let read = read.and_then(JValueOwned::i).map_err(io::Error::other)?;
        let count = usize::try_from(read);
        let count = count.map_err(|_| io::Error::other("the stream threw an exception"))?;
        if count > most {
            let text = format!("the stream gave {count} bytes of {most}");
            return Err(io::Error::other(text));
        }
        let mut of_java = vec![0; count];
        let copied = self.piece.get_region(env, 0, &mut of_java);
        copied.map_err(io::Error::other)?;
        for (byte, of_java) in bytes.iter_mut().zip(of_java) {
            *byte = of_java.cast_unsigned();
        }
        Ok(count)
    }
}

/// Runs what a program does before the point where a state ends. Fails if it threw an exception.
pub(crate) fn run(env: &Shared<'_, '_>, streams: &JObject<'_>) -> Result<(), Failure> {
    let (name, types) = (jni_str!("before"), jni_sig!("()Z"));
    let returned = env.borrow_mut().call_method(streams, name, types, &[]);
    match returned.and_then(JValueOwned::z).map_err(of_java)? {
        true => Ok(()),
        false => Err(thrown()),
    }
}

/// The bytes of the point where a state ends. Fails if the program threw an exception in place of
/// them.
pub(crate) fn position(env: &Shared<'_, '_>, streams: &JObject<'_>) -> Result<Vec<u8>, Failure> {
    let env = &mut **env.borrow_mut();
    let (name, types) = (jni_str!("position"), jni_sig!("()[B"));
    let returned = env.call_method(streams, name, types, &[]);
    let array = returned.and_then(JValueOwned::l).map_err(of_java)?;
    if array.is_null() {
        return Err(thrown());
    }
    // SAFETY: the method returns an array of bytes.
    let array = unsafe { JByteArray::from_raw(env, array.into_raw()) };
    bytes(env, "position", &array)
}

fn thrown() -> Failure {
    Failure::new(Code::Io, "position threw an exception")
}
