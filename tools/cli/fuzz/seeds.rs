//! Writes the inputs of the bounded tests as a corpus: `cargo run --bin seeds -- FOLDER` makes a
//! file for each record format in FOLDER.

use std::path::Path;

#[path = "../tests/mutations/cases.rs"]
#[allow(dead_code, reason = "captures are generated, not listed")]
mod cases;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).expect("the folder of the corpus");
    std::fs::create_dir_all(&folder)?;
    for (number, case) in cases::RECORDS.iter().enumerate() {
        let selected = u8::try_from(number).expect("at most 256 cases");
        let bytes = [&[selected, 255], case.input].concat();
        std::fs::write(Path::new(&folder).join(format!("case-{number}")), bytes)?;
    }
    Ok(())
}
