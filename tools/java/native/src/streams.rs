//! Streams of Java, to which states are written and from which they are read.
//!
//! The other side, `echoless.Streams`, keeps what a stream throws, and throws it again once the
//! native method has returned. No exception is pending while the library runs.

use std::io::{self, Read, Write};

use jni::objects::{JByteArray, JObject};
use jni::{Env, JValue, JValueOwned, jni_sig, jni_str};

/// The bytes that are passed to Java at a time.
const PIECE: usize = 1 << 16;

/// A stream of Java, with an array for the bytes that pass.
pub(crate) struct Stream<'a, 'local> {
    env: &'a mut Env<'local>,
    stream: &'a JObject<'local>,
    piece: JByteArray<'local>,
}

impl<'a, 'local> Stream<'a, 'local> {
    /// # Errors
    /// [`io::Error`] if Java has no memory.
    pub(crate) fn new(
        env: &'a mut Env<'local>,
        stream: &'a JObject<'local>,
    ) -> Result<Self, io::Error> {
        let piece = env.new_byte_array(PIECE).map_err(io::Error::other)?;
        Ok(Self { env, stream, piece })
    }
}

impl Write for Stream<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(PIECE)];
        let of_java: Vec<i8> = bytes.iter().map(|byte| byte.cast_signed()).collect();
        let copied = self.piece.set_region(self.env, 0, &of_java);
        copied.map_err(io::Error::other)?;
        let arguments = [
            JValue::Object(self.piece.as_ref()),
            JValue::Int(bytes.len() as i32),
        ];
        let written = self.env.call_method(
            self.stream,
            jni_str!("write"),
            jni_sig!("([BI)Z"),
            &arguments,
        );
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

impl Read for Stream<'_, '_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let most = bytes.len().min(PIECE);
        let arguments = [
            JValue::Object(self.piece.as_ref()),
            JValue::Int(most as i32),
        ];
        let read = self.env.call_method(
            self.stream,
            jni_str!("read"),
            jni_sig!("([BI)I"),
            &arguments,
        );
        let read = read.and_then(JValueOwned::i).map_err(io::Error::other)?;
        let count = usize::try_from(read);
        let count = count.map_err(|_| io::Error::other("the stream threw an exception"))?;
        if count > most {
            let text = format!("the stream gave {count} bytes of {most}");
            return Err(io::Error::other(text));
        }
        let mut of_java = vec![0; count];
        let copied = self.piece.get_region(self.env, 0, &mut of_java);
        copied.map_err(io::Error::other)?;
        for (byte, of_java) in bytes.iter_mut().zip(of_java) {
            *byte = of_java.cast_unsigned();
        }
        Ok(count)
    }
}
