//! Files as values.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use echoless_durable::storage::Storage;

/// The bytes of a file.
pub(crate) fn read(storage: &dyn Storage, path: impl AsRef<Path>) -> Vec<u8> {
    let mut bytes = Vec::new();
    storage
        .read(path.as_ref())
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

/// The files of a folder with their bytes as text.
pub(crate) fn files(storage: &dyn Storage, folder: impl AsRef<Path>) -> BTreeMap<String, String> {
    let folder = folder.as_ref();
    let names = storage.list(folder).unwrap();
    names
        .iter()
        .map(|name| {
            let bytes = read(storage, folder.join(name));
            let text = String::from_utf8(bytes).unwrap();
            (name.to_str().unwrap().to_owned(), text)
        })
        .collect()
}

/// Creates a file with content, which is not synced.
pub(crate) fn write(storage: &dyn Storage, path: &str, content: &str) {
    let mut file = storage.create(&PathBuf::from(path)).unwrap();
    file.write_all(content.as_bytes()).unwrap();
}
